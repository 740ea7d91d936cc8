"""Wake others: make tasks due that wait for an event of another entity. It is noted where it happens, and done by polls."""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import datetime
from time import monotonic
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import connections

from timeline import reasons
from timeline.dialects import dialect_of
from timeline.lifecycle import WAITING, Reason, Trigger
from timeline.models import EntityRef, ScheduledTask, Wake
from timeline.models.among import Among
from timeline.models.kin import names_of
from timeline.store.announcing import announce
from timeline.store.errors import catching
from timeline.store.polling import polling
from timeline.store.writing import Write, apply

logger = logging.getLogger("timeline")

BATCH: Final = 1000  # Tasks in one transaction, and notes.
A_TURN: Final = 0.5  # Seconds of a poll; what is left is the next one's.


def note(name: str, key: str, refs: Collection[EntityRef], *, using: str) -> None:
    """
    Note, in the caller's transaction, that this event came to these entities, as far as tasks of others wait for it. One
    statement; none without entities. It locks no task: whoever has one of those may be waiting for the caller.

    Args:
        name, key: Of the event. No name: they were deleted.
        refs: By the names that their events are recorded under. The caller has locked them before this statement, so that it
            sees who went to rest before that.
        using: Database alias.
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
    """Note that an entity was deleted, as far as tasks of others wait for an event of it: none comes any more."""
    note("", "", [names_of(ref, using=using)[0]], using=using)


def wake_noted(*, now: datetime, using: str) -> int:
    """
    Make due what the notes say, for a part of a poll at most. Safe in any number of copies at once.

    Waits for nobody: what somebody else has locked is left, with its note, for the next poll. Tasks are locked in order of
    their ids, and with nothing else. What cannot be carried out is left, too, with a word in the log: polls go on.

    Args:
        now: Story time.
        using: Database alias.

    Returns:
        How many became available.
    """
    give_up, place, woken = monotonic() + A_TURN, 0, 0
    while monotonic() < give_up:
        caught, done = list[Exception](), None
        with catching(caught), polling(using):
            done = _wake_some(place, now=now, using=using)
        if caught and not connections[using].is_usable():
            raise caught[0]
        if caught:
            logger.error("Notes of whom to wake cannot be carried out now; later polls try again.", exc_info=caught[0])
        if done is None:
            break
        woken, place = woken + done.woken, done.place
    if woken:
        announce(using=using)
    return woken


class _Done(NamedTuple):
    """How many tasks were waked, and behind which note to go on."""

    woken: int
    place: int


def _wake_some(place: int, *, now: datetime, using: str) -> _Done | None:
    """Carry out the next few notes; None: there are none."""
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
    if len(pairs) == BATCH and woken:  # There may be more of the same.
        return _Done(len(woken), place)
    left = set(some) if len(pairs) == BATCH else {number for task_id, number in pairs if task_id not in woken}
    Wake.objects.using(using).filter(pk__in=some.keys() - left).delete()
    return _Done(len(woken), max(some))


def _noted(some: Collection[int], *, now: datetime, using: str) -> list[tuple[UUID, int]]:
    """Task → the note that makes it due: so many at most as go into one transaction."""
    dialect, key = dialect_of(using), ScheduledTask._meta.pk
    asked = {"wakes": dialect.list_of(map(str, some)), "at": _as_stored(now, using), "most": BATCH}
    with connections[using].cursor() as cursor:
        cursor.execute(dialect.sql("noted"), asked)
        return [(key.to_python(task_id), number) for task_id, number in cursor.fetchall()]


def _reason(known: Wake) -> Reason:
    if known.name:
        return reasons.CAME_OF(event=known.name, entity=known.entity_ref)
    return reasons.AWAITED_DELETED(entity=known.entity_ref)


def _as_stored(now: datetime, using: str) -> Any:
    return connections[using].ops.adapt_datetimefield_value(now)
