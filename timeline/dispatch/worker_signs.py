"""Signs of workers: who gives none any more loses its tasks. Also leases, paces, and alerts if nobody polls."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Final
from uuid import UUID

from django.db import connections
from django.db.models import Exists, OuterRef
from django.utils.translation import gettext as _

from timeline.clocks import MachineTime, story_now
from timeline.conf import get_settings
from timeline.engine.groups import run
from timeline.lifecycle import State
from timeline.models import Identity, ScheduledTask, Sign
from timeline.models.upkeep import IdentityQuerySet, Pace
from timeline.reading.diagnosis import find_troubles
from timeline.store.alerts import alert_trouble, alert_unpolled, is_anybody_told
from timeline.store.poll_queries import polling

logger = logging.getLogger("timeline")

JUST_NOW: Final = timedelta(milliseconds=-1)  # Database clocks count milliseconds; a void lease must end before now.

SILENT: Final = timedelta(minutes=2)


def give_sign(worker: str, *, using: str) -> None:
    """Write down that a worker is alive, by the database's real clock. Its name is that on the rows of its tasks."""
    # No bounds: it waits for a lock as long as it takes, since with Celery a message depends on it.
    with polling(using, {}, flushes=False):
        Sign.objects.using(using).bulk_create(
            [Sign(worker=worker, seen_at=MachineTime())],
            update_conflicts=True,
            unique_fields=["worker"],
            update_fields=["seen_at", "missed_at"],
        )


def let_go_of_the_silent(*, just_waited: bool, using: str) -> None:
    """
    Let the leases of silent workers run out, in the caller's transaction.

    A worker is first missed, when three quarters of ``TIMELINE["SILENCE"]`` have passed since its sign. It is silent when the
    whole time has passed and it has been missed for a beat. So living workers lose nothing if the database was away or its
    clock was set: they give a sign within a beat. If the caller had to wait for the database, all get another beat.
    """
    settings = get_settings()
    signs = Sign.objects.using(using).filter(seen_at__lt=MachineTime(-settings.missed_after))
    # Compared with the time when they were read: while their rows are locked here, they cannot give a sign.
    locked = signs.annotate(machine_time=MachineTime()).order_by("worker").select_for_update(skip_locked=True)
    newly, silent = [], []
    for sign in locked:
        if just_waited or sign.missed_at is None:
            newly.append(sign.worker)
        elif (
            sign.seen_at < sign.machine_time - settings.SILENCE
            and sign.missed_at < sign.machine_time - settings.sign_every
        ):
            silent.append(sign.worker)
    if newly:
        Sign.objects.using(using).filter(worker__in=newly).update(missed_at=MachineTime())
    _void(silent, using)


def _void(workers: Sequence[str], using: str) -> None:
    """Let their leases run out; forget workers that hold nothing more. Locked rows are left for next time."""
    if not workers:
        return
    tasks = ScheduledTask.objects.using(using)
    held = tasks.filter(state=State.ACTIVE, worker__in=workers, lease_expires_at__gt=MachineTime())
    if ours := [task.pk for task in held.by_id().only("pk").locked(skip_locked=True)]:
        logger.warning("Attempts given up: %d. %s gave no sign any more.", len(ours), ", ".join(workers))
        tasks.filter(pk__in=ours).update(lease_expires_at=MachineTime(JUST_NOW))
    left = tasks.filter(state=State.ACTIVE, worker=OuterRef("worker"), lease_expires_at__gt=MachineTime())
    Sign.objects.using(using).filter(~Exists(left), worker__in=workers).delete()


def given_signs(workers: Sequence[str], *, using: str) -> set[str]:
    """The workers among these that have given a sign, and are not silent yet."""
    return set(Sign.objects.using(using).filter(worker__in=set(workers)).values_list("worker", flat=True))


def extend_leases(attempts: Mapping[UUID, int], *, using: str) -> int:
    """
    Extend the leases of running attempts, by task id, to ``TIMELINE["LEASE"]`` from now, by the database's real clock. Locked
    rows are skipped, so that others do not wait: the next beat extends them. Gives how many were extended.
    """
    if not attempts:
        return 0
    with polling(using, flushes=False):
        tasks = ScheduledTask.objects.using(using)
        # The state is no condition, as in ``still_ours``.
        held = tasks.filter(pk__in=list(attempts)).by_id().only("pk", "attempt", "state").locked(skip_locked=True)
        ours = [task.pk for task in held if task.state == State.ACTIVE and task.attempt == attempts[task.pk]]
        return tasks.filter(pk__in=ours).update(lease_expires_at=MachineTime(get_settings().LEASE))


def keep_paces(seconds: Mapping[str, float], *, using: str) -> None:
    """Store how many seconds one task of a kind takes: task key → moving average; the last value counts. One statement."""
    rows = [
        Pace(task_key=task_key, seconds=average, measured_at=MachineTime())
        for task_key, average in sorted(seconds.items())
    ]
    Pace.objects.using(using).bulk_create(
        rows, update_conflicts=True, unique_fields=["task_key"], update_fields=["seconds", "measured_at"]
    )


def is_silent(*, using: str) -> bool:
    """Whether nobody has polled a database of this site for two minutes. One statement, which reads one row."""
    return silent(using=using).exists()


def silent(*, using: str) -> IdentityQuerySet:
    """Ask for the row of a database of this site, if nobody has polled it for two minutes."""
    unpolled = Identity.objects.using(using).unpolled(SILENT).there(SILENT)
    return unpolled.filter(site=get_settings().SITE)


def tell_if_unpolled(*, using: str) -> list[ScheduledTask]:
    """
    Have people told if nobody has polled a database of this site for two minutes: once an hour, however many notice it. Gives
    the alert, which is run here; if that fails, the next process tries again. Not in a transaction, which might be undone.
    """
    if connections[using].in_atomic_block or not is_anybody_told():
        return []
    if not is_silent(using=using):
        return []
    text = _("Nobody polls it. Start timeline_worker; with Celery, beat and a worker for polls, or timeline_poll.")
    alert = alert_unpolled(text, now=story_now(using), using=using)
    if alert is None or not alert.is_open:
        return []
    return run(task_ids=[alert.pk], clock=partial(story_now, using), using=using, worker="doctor")


def tell_troubles(*, using: str) -> None:
    """Have people told about troubles that are not about tasks: once an hour, however many notice them."""
    if not is_anybody_told():
        return
    now = story_now(using)
    for trouble in find_troubles(now=now, using=using):
        alert_trouble(trouble, now=now, using=using)
