"""Wake others: make tasks due that wait for an event of another entity. The event leaves a note, and polls do the rest."""

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

BATCH: Final = 1000  # How many tasks, and how many notes, one transaction has.
A_TURN: Final = 0.5  # Seconds of a poll; the next poll does the rest.


def note(name: str, key: str, refs: Collection[EntityRef], *, using: str) -> None:
    """
    Note, in the caller's transaction, that this event happened to these entities, if tasks of other entities wait for it. One
    statement; none without entities. It locks no task, because a process that has locked one may be waiting for the caller.

    Args:
        name, key: The name and the key of the event. An empty name: the entities were deleted.
        refs: The entities, by the names under which their events are recorded. The caller has locked them before this
            statement, so that it sees all tasks that began to wait before that.
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
    """Note that an entity was deleted, if tasks of other entities wait for its events: there will be none any more."""
    note("", "", [names_of(ref, using=using)[0]], using=using)


def wake_noted(*, now: datetime, using: str) -> int:
    """
    Make the tasks due that the notes name, for a part of a poll at most. Several processes may do so at once.

    This waits for nobody: tasks that somebody else has locked are left for the next poll, with their notes. Tasks are locked in
    the order of their ids, and nothing else is locked but the notes. If a note causes an error, it is left, too, and the error
    is logged: polls go on.

    Args:
        now: Story time.
        using: Database alias.

    Returns:
        How many tasks became available.
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
    """How many tasks were waked, and the note after which to continue."""

    woken: int
    place: int


def _wake_some(place: int, *, now: datetime, using: str) -> _Done | None:
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
        return _Done(len(woken), place)
    left = set(some) if len(pairs) == BATCH else {number for task_id, number in pairs if task_id not in woken}
    Wake.objects.using(using).filter(pk__in=some.keys() - left).delete()
    return _Done(len(woken), max(some))


def _noted(some: Collection[int], *, now: datetime, using: str) -> list[tuple[UUID, int]]:
    """Pairs of a task and the note that makes it due, as many as one transaction may have."""
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
