"""Wake: make tasks due that wait for an event that was recorded just now."""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import UTC, datetime
from time import monotonic
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import connections

from timeline.dialects import Among, Dialect, dialect_of
from timeline.features.waits.sentences import AWAITED_DELETED, CAME, CAME_OF
from timeline.lifecycle import WAITING, Reason, Trigger
from timeline.models import EntityRef, ScheduledTask, Wake
from timeline.models.kin import names_of
from timeline.store.database_errors import catching, is_usable
from timeline.store.poll_queries import polling
from timeline.store.returned_rows import COLUMNS
from timeline.store.signal_dispatch import announce
from timeline.store.transition import Write, advance, apply

logger = logging.getLogger("timeline")
BATCH: Final = 1000  # How many tasks, and how many notes, one transaction has.
A_TURN: Final = 0.5  # Seconds of a poll; the next poll does the rest.


def wake(name: str, key: str, refs: Collection[EntityRef], *, now: datetime, using: str) -> int:
    """
    Make tasks due that wait for this event of these entities, which the caller has locked; give how many. They only look
    again, and get the events that they find then. One statement, on SQLite three; none without entities.
    """
    return wake_named(name, key, refs, CAME(event=name), now=now, using=using) if refs else 0


def wake_named(name: str, key: str, refs: Collection[EntityRef], reason: Reason, *, now: datetime, using: str) -> int:
    """Make tasks due whose rows have this name, of an event or of what stands in its place; as ``wake``, for this reason."""
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


def note(name: str, key: str, refs: Collection[EntityRef], *, using: str) -> None:
    """
    Note that this event happened to these entities, if tasks of other entities wait for it. An empty name: they were deleted.

    One statement, none without entities. It locks no task, since who has locked one may wait for the caller. The caller has
    locked the entities before, so that it sees all tasks that began to wait.
    """
    if not refs:
        return
    dialect, connection = dialect_of(using), connections[using]
    asked = {**dialect.entities_of(sorted(refs)), "name": name, "key": key}
    with connection.cursor() as cursor:
        cursor.execute(dialect.sql("note_wakes"), asked)
        if cursor.rowcount:
            announce(using=using)


def note_deletion(ref: EntityRef, *, using: str) -> None:
    """Note that an entity was deleted, if tasks of other entities wait for its events: there will be none any more."""
    note("", "", [names_of(ref, using=using)[0]], using=using)


def wake_noted(*, now: datetime, using: str) -> int:
    """
    Make the tasks due that the notes name, for a part of a poll at most; give how many. Several processes may do so at once.

    This waits for nobody: locked tasks are left for the next poll, with their notes. Only tasks, in the order of their ids, and
    notes are locked. A note that causes an error is left, too, and logged.
    """
    give_up, place, woken = monotonic() + A_TURN, 0, 0
    while monotonic() < give_up:
        caught, done = list[Exception](), None
        with catching(caught), polling(using):
            done = _wake_some(place, now=now, using=using)
        if caught and not is_usable(using):
            raise caught[0]
        if caught:
            logger.error("Notes of whom to wake cannot be carried out now; later polls try again.", exc_info=caught[0])
        if done is None:
            break
        woken, place = woken + done.woken, done.place
    if woken:
        announce(using=using)
    return woken


class _Woken(NamedTuple):
    """How many tasks were woken, and the note after which to continue."""

    woken: int
    place: int


def _wake_some(place: int, *, now: datetime, using: str) -> _Woken | None:
    """Carry out the next notes; None: there are none."""
    notes = Wake.objects.using(using).filter(pk__gt=place).order_by("pk")
    some = {known.pk: known for known in notes.select_for_update(skip_locked=True)[:BATCH]}
    if not some:
        return None
    pairs = _noted(some, now=now, using=using)
    why: dict[UUID, Wake] = {}
    for task_id, number in pairs:
        why.setdefault(task_id, some[number])
    tasks = ScheduledTask.objects.using(using).filter(Among(why), state__in=WAITING, scheduled_at__gt=now)
    writes = [
        Write(task=task, triggers=(Trigger.DUE,), scheduled_at=now, reason=_reason(why[task.pk]))
        for task in (tasks.by_id().locked(skip_locked=True) if why else ())
    ]
    woken = {task.pk for task in apply(writes, now=now, using=using)}
    if len(pairs) == BATCH and woken:  # The same notes may have more tasks.
        return _Woken(len(woken), place)
    left = set(some) if len(pairs) == BATCH else {number for task_id, number in pairs if task_id not in woken}
    Wake.objects.using(using).filter(pk__in=some.keys() - left).delete()
    return _Woken(len(woken), max(some))


def _noted(some: Collection[int], *, now: datetime, using: str) -> list[tuple[UUID, int]]:
    """Pairs of a task and the note that makes it due, as many as one transaction may have."""
    dialect, key = dialect_of(using), ScheduledTask._meta.pk
    asked = {"wakes": dialect.list_of(map(str, some)), "at": _as_stored(now, using), "most": BATCH}
    with connections[using].cursor() as cursor:
        cursor.execute(dialect.sql("noted"), asked)
        return [(key.to_python(task_id), number) for task_id, number in cursor.fetchall()]


def _reason(known: Wake) -> Reason:
    if known.name:
        return CAME_OF(event=known.name, entity=known.entity_ref)
    return AWAITED_DELETED(entity=known.entity_ref)
