"""Signs of workers: each gives a sign every few seconds; tasks of a worker that gives none any more are taken from it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from django.db.models import Exists, OuterRef

from timeline.clocks import MachineTime
from timeline.conf import get_settings
from timeline.lifecycle import State
from timeline.models import ScheduledTask, Sign
from timeline.store.polling import polling

logger = logging.getLogger("timeline")

JUST_NOW: Final = timedelta(milliseconds=-1)  # Database clocks count milliseconds; a void lease must end before now.


def give_sign(worker: str, *, using: str) -> None:
    """
    Write down that a worker is alive, by the database's real clock.

    Args:
        worker: Its name, as on the rows of its tasks.
        using: Database alias.
    """
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

    A worker is first missed, when three quarters of ``TIMELINE["SILENCE"]`` have passed since its sign. It is silent when
    the whole time has passed and it has been missed for a beat. So living workers lose nothing if the database was away, for
    however long, or its clock was set: they give a sign within a beat.

    Args:
        just_waited: Whether the caller had to wait for the database: then other writers had to wait as well, and all workers
            get another beat.
        using: Database alias.
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
        logger.warning("%d attempts are given up: %s gave no sign any more.", len(ours), ", ".join(workers))
        tasks.filter(pk__in=ours).update(lease_expires_at=MachineTime(JUST_NOW))
    left = tasks.filter(state=State.ACTIVE, worker=OuterRef("worker"), lease_expires_at__gt=MachineTime())
    Sign.objects.using(using).filter(~Exists(left), worker__in=workers).delete()


def given_signs(workers: Sequence[str], *, using: str) -> set[str]:
    """The workers among these that have given a sign, and are not silent yet."""
    return set(Sign.objects.using(using).filter(worker__in=set(workers)).values_list("worker", flat=True))
