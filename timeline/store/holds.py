"""
What is on hold. The rows of tasks do not show it. Statements that claim tasks, begin them or look at them read the table of
holds, too; it is mostly empty.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db import connections
from django.db.models import Q
from django.utils import translation

from timeline import reasons
from timeline.dialects import dialect_of
from timeline.exceptions import UnknownTask
from timeline.lifecycle import Reason
from timeline.models import EntityRef, Hold, ScheduledTask, Scope
from timeline.models.task import ScheduledTaskQuerySet
from timeline.registry import registry

# Whether anything is on hold: a column for statements that ask for something else.
IS_ANY_OPEN: Final = "EXISTS (SELECT 1 FROM timeline_hold WHERE released_at IS NULL)"


@dataclass(frozen=True, slots=True)
class OnHold:
    """
    The kinds of tasks that are on hold, whatever entities they are about.

    Args:
        targets: Scope and target of each open hold, without duplicates.
    """

    targets: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def read(cls, found: str | None) -> OnHold:
        """Read the value that a statement with ``{kinds_on_hold}`` returns."""
        return cls(frozenset((scope, target) for scope, target in json.loads(found))) if found else cls()

    @property
    def has_entities(self) -> bool:
        """Whether entities are on hold, too."""
        return (Scope.ENTITY, "") in self.targets

    def covers(self, task_key: str, queue: str = "") -> bool:
        """
        Whether a kind is on hold.

        Args:
            task_key: Key of the kind.
            queue: The queue to assume, if this process does not know the kind.
        """
        asked = {
            (Scope.EVERYTHING.value, ""),
            (Scope.TASK.value, task_key),
            (Scope.TIMELINE.value, task_key.partition(".")[0]),
            (Scope.QUEUE.value, queue_of(task_key, queue)),
        }
        return not asked.isdisjoint(self.targets)


NOTHING_ON_HOLD: Final = OnHold()


def queue_of(task_key: str, otherwise: str = "") -> str:
    """The queue that a kind declares. Its tasks are claimed by this one, even if their rows have another."""
    try:
        return registry.task(task_key)[1].options.queue
    except UnknownTask:
        return otherwise


def is_any_open(*, using: str) -> bool:
    """Whether anything is on hold. This is one look in an index that is mostly empty."""
    with connections[using].cursor() as cursor:
        cursor.execute(f"SELECT {IS_ANY_OPEN}")
        return bool(cursor.fetchone()[0])


def on_hold(*, using: str) -> OnHold:
    """Read which kinds are on hold."""
    with connections[using].cursor() as cursor:
        cursor.execute(dialect_of(using).sql("on_hold"))
        return OnHold.read(cursor.fetchone()[0])


def holds_over(tasks: Sequence[ScheduledTask], *, using: str) -> dict[UUID, list[Hold]]:
    """
    Find the open holds over some tasks in one statement.

    Returns:
        Id of a task that is on hold → its holds, the oldest first.
    """
    dialect, refs = dialect_of(using), sorted({task.entity_ref for task in tasks if task.entity_label})
    named: dict[EntityRef, list[Hold]] = defaultdict(list)
    others = list[Hold]()
    for hold in Hold.objects.using(using).raw(dialect.sql("holds_over"), dialect.entities_of(refs)):
        if hold.scope != Scope.ENTITY:
            others.append(hold)
            continue
        for ref in hold.refs:
            named[ref].append(hold)
    found = {}
    for task in tasks:
        over = [*named.get(task.entity_ref, ()), *(hold for hold in others if _covers(hold, task))]
        if over:
            found[task.id] = sorted(over, key=lambda hold: (hold.created_at, hold.pk))
    return found


def covers(hold: Hold, task: ScheduledTask) -> bool:
    """Whether a hold covers a task."""
    return task.entity_ref in hold.refs if hold.scope == Scope.ENTITY else _covers(hold, task)


def _covers(hold: Hold, task: ScheduledTask) -> bool:
    return OnHold(frozenset({(hold.scope, hold.target)})).covers(task.task_key, task.queue)


def tasks_under(hold: Hold, tasks: ScheduledTaskQuerySet) -> ScheduledTaskQuerySet:
    """Narrow tasks down to those that a hold covers."""
    match hold.scope:
        case Scope.ENTITY:
            condition = Q()
            for ref in hold.refs:
                condition |= Q(entity_label=ref.label, entity_id=ref.id)
            return tasks.filter(condition)
        case Scope.TASK:
            return tasks.filter(task_key=hold.target)
        case Scope.TIMELINE:
            return tasks.of_timeline(hold.target)
        case Scope.QUEUE:
            unknown = Q(queue=hold.target) & ~Q(task_key__in=registry.task_keys())
            return tasks.filter(Q(task_key__in=registry.task_keys(hold.target)) | unknown)
        case _:
            return tasks


def not_on_hold(tasks: ScheduledTaskQuerySet, held: OnHold, *, task_keys: Iterable[str]) -> ScheduledTaskQuerySet:
    """Narrow tasks of these kinds down to those that no hold covers."""
    if not held.targets:
        return tasks.with_handler(list(task_keys))
    free = tasks.with_handler([key for key in task_keys if not held.covers(key)])
    return free.not_of_held_entities() if held.has_entities else free


def reason_of(hold: Hold) -> Reason:
    """The reason that a task is on hold, for its row and its log."""
    return reasons.ON_HOLD(what=in_english(hold), at=hold.created_at)


def in_english(hold: Hold) -> str:
    """What a hold covers, in English, as rows store it."""
    with translation.override("en"):
        return hold.what
