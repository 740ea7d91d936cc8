"""Adopt: make a database belong to this site, and if wanted end what another site left open; check before work whose it is."""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from django.db import connections

from timeline.clocks import MachineTime
from timeline.conf import get_settings
from timeline.exceptions import NoAutocommit, WrongSite
from timeline.lifecycle import Reason, RunEnd, Trigger
from timeline.models import Identity, ScheduledTask, TimelineRun
from timeline.models.upkeep import THE_ONE
from timeline.operations.leave import end_runs
from timeline.store.isolation_level import atomic
from timeline.store.locks import lock_runs, lock_tasks
from timeline.store.poll_queries import Signed, sign
from timeline.store.transition import Write, apply

BATCH: Final = 500


class Open(NamedTuple):
    """How many runs and tasks have not ended."""

    runs: int = 0
    tasks: int = 0


def count_open(*, using: str) -> Open:
    """Count the runs and tasks in a database that have not ended."""
    runs = TimelineRun.objects.using(using).open().count()
    return Open(runs, ScheduledTask.objects.using(using).open().count())


def adopt(*, now: datetime, using: str) -> None:
    """Make the database belong to ``TIMELINE["SITE"]``: from now on its open tasks run here."""
    Identity.objects.using(using).update_or_create(
        pk=THE_ONE, defaults={"site": get_settings().SITE, "adopted_at": now, "polled_at": None}
    )


def clear(*, reason: Reason, now: datetime, using: str) -> Open:
    """End all open runs and cancel all open tasks, in batches of one transaction each; gives how many."""
    runs = tasks = 0
    while ended := _end_some_runs(reason, now, using):
        runs, tasks = runs + ended.runs, tasks + ended.tasks
    while cancelled := _cancel_some(reason, now, using):
        tasks += cancelled
    return Open(runs, tasks)


def _end_some_runs(reason: Reason, now: datetime, using: str) -> Open | None:
    with atomic(using=using):
        some = list(TimelineRun.objects.using(using).open().order_by("pk")[:BATCH])
        locked = lock_runs((run.pk for run in some), (run.entity_ref for run in some), using=using)
        still = [run for run in locked.runs if run.is_open]
        cancelled = end_runs(still, RunEnd.LEFT, reason=reason, now=now, using=using)
    return Open(len(some), len(cancelled)) if some else None


def _cancel_some(reason: Reason, now: datetime, using: str) -> int:
    with atomic(using=using):
        some = ScheduledTask.objects.using(using).open().order_by("pk").values_list("pk", flat=True)[:BATCH]
        tasks = lock_tasks(list(some), using=using)
        writes = [Write(task=task, triggers=(Trigger.CANCEL,), reason=reason) for task in tasks if task.is_open]
        apply(writes, now=now, using=using)
    return len(tasks)


def stamp(*, now: datetime, using: str) -> None:
    """Give a new database the site of the settings; one that has a site keeps it."""
    Identity.objects.using(using).get_or_create(pk=THE_ONE, defaults={"site": get_settings().SITE, "adopted_at": now})


def confirm_site(*, using: str) -> None:
    """
    Check that the database belongs to ``TIMELINE["SITE"]``, or to no site as it has no row for it.

    Raises:
        NoAutocommit: if its connection commits nothing by itself.
        WrongSite: if it belongs to another site; nothing of it may be run here.
    """
    _confirm(using)


def sign_of_poller(*, using: str) -> Signed:
    """As ``confirm_site``; writes down the time of the poll, about once in an interval. Tells of holds and bulk actions."""
    found = _confirm(using)
    if found.is_due:
        Identity.objects.using(using).filter(pk=THE_ONE).update(polled_at=MachineTime())
    return found


def _confirm(using: str) -> Signed:
    """Check that the database is ours. Tells whether the time of a poll has to be written, and what polls have to do."""
    if not _commits(using):
        raise NoAutocommit(using)
    ours = get_settings()
    found = sign(ours.POLL_INTERVAL, using=using)
    if found.site != ours.SITE:
        raise WrongSite(ours.SITE, found.site, using)
    return found


def _commits(using: str) -> bool:
    """Whether autocommit is on: in the settings, and on an open connection that is not in a transaction."""
    connection = connections[using]
    is_bare = connection.connection is not None and not connection.in_atomic_block
    return bool(connection.settings_dict["AUTOCOMMIT"]) and (connection.autocommit or not is_bare)
