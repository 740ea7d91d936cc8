"""Two snapshots of the tasks that an entity has ahead, and their differences."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from django.utils.translation import pgettext

from timeline.models import EntityRef, ScheduledTask, TimelineRun
from timeline.models.among import Among
from timeline.reading.explaining import why
from timeline.reading.foreseeing import foreseen_of
from timeline.reading.recalling import recall

if TYPE_CHECKING:
    from timeline.models.run import TimelineRunQuerySet
    from timeline.models.task import ScheduledTaskQuerySet


class Becomes(StrEnum):
    """How a task that is ahead would change."""

    NEW = "new"
    MOVED = "moved"
    GONE = "gone"
    SAME = "same"


class Effect(NamedTuple):
    """
    The effect on one task that is ahead, or would be.

    Args:
        task_key: Key of the task; with its occurrence, if it is one of many.
        at: When it is due, or expected, in the present plan (aware); None: it is not ahead, or nobody can say.
        then_at: When it would be due; None: it would not be ahead, or nobody could say.
        change: The kind of change.
        is_foreseen: Whether it would have no row yet.
        why: Why it would be gone; else empty.
        row: Its row after the change; None: it has none, or would have none. Never save it.
    """

    task_key: str
    at: datetime | None
    then_at: datetime | None
    change: Becomes
    is_foreseen: bool
    why: str = ""
    row: ScheduledTask | None = None

    @property
    def words(self) -> str:
        """The effect in words, for people."""
        said = {
            Becomes.NEW: pgettext("timeline", "new"),
            Becomes.MOVED: pgettext("timeline", "moved"),
            Becomes.GONE: pgettext("timeline", "called off"),
            Becomes.SAME: pgettext("timeline", "as it is"),
        }[self.change]
        return f"{said}: {self.why}" if self.why else said


@dataclass(frozen=True, slots=True)
class Snapshot:
    """
    The tasks that an entity has ahead at one moment.

    Args:
        rows: Open tasks; and, if asked for, tasks that were open in an earlier snapshot.
        foreseen: Run and key of each task that has no row yet → when it is expected.
    """

    rows: dict[UUID, ScheduledTask]
    foreseen: dict[tuple[UUID, str], list[datetime | None]]


def looker(
    ref: EntityRef,
    *,
    tasks: ScheduledTaskQuerySet | None = None,
    seen: Callable[[TimelineRunQuerySet], Iterable[TimelineRun]] | None = None,
    now: datetime,
    using: str,
) -> Callable[[], Snapshot]:
    """
    Make a function that takes a snapshot of an entity at each call. It also reads the tasks that it has read before.

    Args:
        ref: The entity.
        tasks: The tasks to include; None: all.
        seen: Picks the runs whose follow-ups are included; None: all.
        now: Story time.
        using: Database alias.
    """
    known = set[UUID]()

    def look() -> Snapshot:
        every = ScheduledTask.objects.using(using) if tasks is None else tasks
        found = snapshot(ref, known=known, tasks=every, seen=seen or list, now=now, using=using)
        known.update(found.rows)
        return found

    return look


def snapshot(
    ref: EntityRef,
    *,
    known: Iterable[UUID] = (),
    tasks: ScheduledTaskQuerySet,
    seen: Callable[[TimelineRunQuerySet], Iterable[TimelineRun]],
    now: datetime,
    using: str,
) -> Snapshot:
    """
    Take a snapshot of the tasks that an entity has ahead. Five statements, and those that read the entities of its runs.

    Args:
        ref: The entity.
        known: Tasks that are read in any state.
        tasks, seen: As for ``looker``.
        now: Story time.
        using: Database alias.
    """
    rows = {task.pk: task for task in tasks.for_entity(ref).open().select_related("run")}
    ended = [key for key in known if key not in rows]
    rows |= {task.pk: task for task in tasks.filter(Among(ended)).select_related("run")} if ended else {}
    recall([rows[key] for key in ended if key in rows], using=using)
    expected: dict[tuple[UUID, str], list[datetime | None]] = defaultdict(list)
    runs = TimelineRun.objects.using(using).open().for_entity(ref)
    for run, outlook in foreseen_of(seen(runs), now=now, using=using):
        expected[run.pk, outlook.task_key].append(outlook.expected_at)
    return Snapshot(rows, dict(expected))


def effects(before: Snapshot, after: Snapshot) -> list[Effect]:
    """
    List all tasks with their change, if any: ordered by the time after the change; a task that would be gone, by its own
    time.
    """
    found = [*_of_rows(before, after), *_of_foreseen(before, after)]
    return sorted(found, key=lambda effect: (_moment(effect), effect.task_key))


def _of_rows(before: Snapshot, after: Snapshot) -> Iterable[Effect]:
    carried_on = {task.previous_id: task for task in after.rows.values() if task.is_open and task.previous_id}
    seen = set()
    for key, task in before.rows.items():
        then = after.rows.get(key)
        if then is None or not then.is_open:
            told, then = then, carried_on.get(key)
        if then is None:
            said = why(told) if told is not None else ""
            yield Effect(task.full_key, task.scheduled_at, None, Becomes.GONE, is_foreseen=False, why=said, row=told)
            continue
        seen.add(then.pk)
        yield _moved(task.full_key, task.scheduled_at, then.scheduled_at, is_foreseen=False, row=then)
    for key, task in after.rows.items():
        if task.is_open and key not in seen:
            yield Effect(task.full_key, None, task.scheduled_at, Becomes.NEW, is_foreseen=False, row=task)


def _of_foreseen(before: Snapshot, after: Snapshot) -> Iterable[Effect]:
    for run, key in before.foreseen.keys() | after.foreseen.keys():
        old, new = (deque(side.foreseen.get((run, key), [])) for side in (before, after))
        while old and new:
            yield _moved(key, old.popleft(), new.popleft(), is_foreseen=True)
        yield from (Effect(key, at, None, Becomes.GONE, is_foreseen=True) for at in old)
        yield from (Effect(key, None, at, Becomes.NEW, is_foreseen=True) for at in new)


def _moved(
    key: str, at: datetime | None, then_at: datetime | None, *, is_foreseen: bool, row: ScheduledTask | None = None
) -> Effect:
    change = Becomes.SAME if at == then_at else Becomes.MOVED
    return Effect(key, at, then_at, change, is_foreseen=is_foreseen, row=row)


def _moment(effect: Effect) -> tuple[bool, float]:
    at = effect.then_at or effect.at
    return (at is None, at.timestamp() if at is not None else 0.0)
