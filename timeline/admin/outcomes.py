"""Old and new: what an action makes of a task before somebody confirms it, and what that means to what follows from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from django.utils import timezone

from timeline.admin.references import Called, called
from timeline.exceptions import DateOutOfRange, TimelineError, UnknownTask
from timeline.lifecycle import WAITING, State
from timeline.models.entities import Entities, load_entities
from timeline.models.facts import zone_of
from timeline.operations.move import shifted
from timeline.policy import Action
from timeline.registry import registry

if TYPE_CHECKING:
    from timeline.admin.actions import Deed
    from timeline.definition import Definition
    from timeline.models import ScheduledTask

FOLLOWED: Final = 10  # Follow-ups told of one task.


class Followed(NamedTuple):
    """A task that follows: when it was expected before, and when after; None: nobody can say. ``comes``: at all then."""

    called: Called
    before: datetime | None
    after: datetime | None
    comes: bool


class TaskOutcome(NamedTuple):
    """What becomes of a task: None for ``due_at``: it does not run; ``is_new``: a next revision carries on for it."""

    due_at: datetime | None
    state: State
    label: str
    is_new: bool
    follow_ups: list[Followed]


def outcomes(
    deed: Deed, tasks: Sequence[ScheduledTask], answers: Mapping[str, Any], *, now: datetime, using: str
) -> dict[UUID, TaskOutcome]:
    """Say what an action makes of tasks that it can change; those of which nobody can say are left out."""
    zoned = [task for task in tasks if task.run_id and _has_zone(task)]
    entities = load_entities({task.entity_ref for task in zoned}, using=using) if zoned else Entities()
    found = {}
    for task in tasks:
        with suppress(DateOutOfRange):
            if (end := _end_of(deed, task, answers, now)) is not None:
                due_at, state, is_new = end
                known = list(_follow_ups(task, due_at, entities, now))[:FOLLOWED]
                found[task.pk] = TaskOutcome(due_at, state, str(state.label), is_new, known)
    return found


def _end_of(
    deed: Deed, task: ScheduledTask, answers: Mapping[str, Any], now: datetime
) -> tuple[datetime | None, State, bool] | None:
    """When it is due then, where it stands, and whether that is another row; None: nobody can say yet."""
    if deed == Action.CANCEL:
        return None, State.CANCELLED, False
    if deed == Action.RUN_NOW:
        return min(now, task.scheduled_at), State.AVAILABLE, False
    if deed == Action.REDRIVE:
        return now, State.AVAILABLE, True
    if deed != Action.MOVE or not (answers.get("at") or answers.get("by")):
        return None
    at = answers.get("at") or shifted(task.scheduled_at, answers["by"])
    is_waiting = task.state in WAITING
    if at <= now:
        return at, State.AVAILABLE, not is_waiting
    return at, State(task.state) if is_waiting else State.SCHEDULED, not is_waiting


def _has_zone(task: ScheduledTask) -> bool:
    definition = registry.about(task.timeline, task.entity_label)
    return definition is not None and bool(definition.cls.time_zone)


def _follow_ups(task: ScheduledTask, due_at: datetime | None, entities: Entities, now: datetime) -> Iterator[Followed]:
    """What counts from its end, and from the end of that; of what is one of many, nobody can say."""
    try:
        definition, declared = registry.task(task.task_key)
    except UnknownTask:
        return
    if not task.run_id or task.is_fanned_out or declared.is_repeated:
        return
    zone: tzinfo = timezone.get_default_timezone()
    with suppress(TimelineError):
        zone = zone_of(definition, entities.get(task.entity_ref))
    before = task.scheduled_at if task.is_open else None
    yield from _behind(definition, declared.name, before, due_at, zone, now)


def _behind(
    definition: Definition,
    name: str,
    before: datetime | None,
    after: datetime | None,
    zone: tzinfo,
    now: datetime,
) -> Iterator[Followed]:
    for other, declared in definition.tasks.items():
        when = declared.when
        if when is None or when.predecessor_name != name:
            continue
        can_say = not (declared.is_repeated or when.is_for_each)
        comes = after is not None or when.takes_any_end
        ends = after or (now if comes else None)
        times = [
            _expected(declared, moment, zone, now) if can_say and moment is not None else None
            for moment in (before, ends)
        ]
        yield Followed(called(definition.task_key(other)), times[0], times[1], comes)
        if can_say:
            yield from _behind(definition, other, times[0], times[1], zone, now)


def _expected(declared: Any, moment: datetime, zone: tzinfo, now: datetime) -> datetime | None:
    try:
        at: datetime = declared.when.resolve(moment, zone)
    except TimelineError:
        return None
    hours = declared.options.window
    return at if hours is None else hours.shifted(at, zone, now)
