"""Wake: make tasks due that wait for an event that was recorded just now."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from typing import Any

from django.db import connections

from timeline import reasons
from timeline.dialects import Dialect, dialect_of
from timeline.lifecycle import Reason, Trigger
from timeline.models import EntityRef, ScheduledTask, TimelineRun
from timeline.models.entities import NO_ENTITY
from timeline.registry import registry
from timeline.store.advancing import advance
from timeline.store.announcing import announce
from timeline.store.queueing import end_of
from timeline.store.returning import COLUMNS
from timeline.store.writing import Write, apply


def wake(name: str, key: str, refs: Collection[EntityRef], *, now: datetime, using: str) -> int:
    """
    Make tasks due that wait for this event of these entities, which the caller has locked. One statement, on SQLite three; none
    without entities.

    This only makes the tasks look again. They get the events that they find then.

    Args:
        name, key: The name and the key of the event.
        refs: The entities for whose events it is known that a task waits.
        now: Story time.
        using: Database alias.

    Returns:
        How many tasks became available.
    """
    return _wake(name, key, refs, reasons.CAME(event=name), now=now, using=using) if refs else 0


def wake_queued(ended: Iterable[TimelineRun], *, now: datetime, using: str) -> int:
    """
    Make tasks due whose runs wait for one of these runs to end. One statement, on SQLite three, for each run that the clock
    began, if runs of its timeline wait for each other.

    Args:
        ended: The runs that ended in this transaction. The caller has the lock of system timelines.
        now, using: As for ``wake``.

    Returns:
        How many tasks became available.
    """
    woken = 0
    for run in ended:
        known = registry.about(run.timeline, run.entity_label) if run.once else None
        if known is not None and known.recurring is not None and known.recurring.overlap == "queue":
            reason = reasons.ENDED_BEFORE(run=run.key)
            woken += _wake(end_of(run.timeline), run.key, [NO_ENTITY], reason, now=now, using=using)
    return woken


def _wake(name: str, key: str, refs: Collection[EntityRef], reason: Reason, *, now: datetime, using: str) -> int:
    dialect = dialect_of(using)
    asked: dict[str, Any] = {**dialect.entities_of(sorted(refs)), "name": name, "key": key}
    if dialect.has_set_statements:
        detail = {"said": dict(reason.said or {}), "scheduled_at": now.astimezone(UTC).isoformat()}
        woken = len(
            advance(
                "awaiting", Trigger.DUE, reason=reason, scheduled_at=now, detail=detail, now=now, using=using, **asked
            )
        )
    else:
        tasks = ScheduledTask.objects.using(using).raw(_all_columns(dialect), {**asked, "at": _as_stored(now, using)})
        writes = [Write(task=task, triggers=(Trigger.DUE,), scheduled_at=now, reason=reason) for task in tasks]
        woken = len(apply(writes, now=now, using=using))
    if woken:
        announce(using=using)
    return woken


def _all_columns(dialect: Dialect) -> str:
    return dialect.sql("awaiting").replace("{columns}", COLUMNS)


def _as_stored(now: datetime, using: str) -> Any:
    return connections[using].ops.adapt_datetimefield_value(now)
