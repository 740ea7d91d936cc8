"""The wait of a task: for which events, of which entity, since when, until when, and who may decide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Exists, OuterRef, Q, prefetch_related_objects
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce
from django.utils.translation import gettext as _

from timeline.exceptions import UnknownTask
from timeline.features.waits.store import Wait, causes_of, declared_wait, first_met, met_among, open_wait
from timeline.lifecycle import WAITING, ReasonCode
from timeline.models import EntityRef, Event, LogEntry, ScheduledTask
from timeline.reading.guard_words import right_in_words
from timeline.reading.in_the_way import in_the_way
from timeline.registry import registry
from timeline.timing import Approval, When, told_time

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet


Moment = datetime | Combinable  # A time, or an expression that is one.


class WaitLine(NamedTuple):
    """A wait that is not over: the first event with one of these names ends it."""

    events: list[str]
    key: str  # Which the event must have; empty: any.
    entity: EntityRef | None  # Whose events count; None: the system's.
    since: datetime
    until: datetime  # When the task goes on without an event.
    permission: str  # Of people who may approve or reject; empty: nobody is asked.

    @property
    def right(self) -> str:
        """The permission in words."""
        return right_in_words(self.permission)

    @property
    def told_events(self) -> list[tuple[str, str]]:
        """Each event with its title, which may be empty."""
        label = self.entity.label if self.entity is not None else ""
        return [(event, registry.title_of_event(event, label)) for event in self.events]


def wait_of(task: ScheduledTask, *, using: str) -> WaitLine | None:
    """For which events a task waits now; None: for none. Two statements, if it waits. ``until`` is the wait's own deadline."""
    if not task.awaits or task.state not in WAITING:
        return None
    rested = LogEntry.objects.using(using).filter(task=task, reason_code=ReasonCode.WAITING).order_by("-seq").first()
    approval, wait = approval_under_way(task), _wait_of(task, using)
    return WaitLine(
        events=task.awaits.split(),
        key=task.awaits_key,
        entity=EntityRef(task.awaits_label, task.awaits_id) if task.awaits_label else None,
        since=rested.at if rested else task.created_at,
        until=wait.until if wait else task.scheduled_at,
        permission=approval.by if approval else "",
    )


def _wait_of(task: ScheduledTask, using: str) -> Wait | None:
    """The recorded wait of its handler, or else the wait of its schedule, if this process knows it."""
    if task.attempt and (wait := open_wait(task, using=using)) is not None:
        return wait
    when = _when_of(task)
    return declared_wait(task, when, using=using) if when is not None and when.awaits else None


def _when_of(task: ScheduledTask) -> When | None:
    try:
        return registry.task(task.task_key)[1].when if task.run_id else None
    except UnknownTask:
        return None


def approval_under_way(task: ScheduledTask) -> Approval | None:
    """The question that is asked now, as far as this process knows. If a handler waits after an approval, nothing is asked."""
    when = _when_of(task) if task.state in WAITING else None
    approval = when.approval if when is not None else None
    return approval if approval is not None and approval.approved in task.awaits.split() else None


def who_decides(task: ScheduledTask) -> str:
    """Say who has to decide about a waiting task, and until when; empty: nobody is asked."""
    approval = approval_under_way(task)
    if approval is None:
        return ""
    said = {"permission": right_in_words(approval.by), "at": told_time(task.nominal_at)}
    return _("Somebody with the permission “%(permission)s” is to approve or reject it, until %(at)s.") % said


def waits_in_words(task: ScheduledTask) -> str:
    """Say in a few words that a task waits for a person or an event, and until when; empty: no, or its reason says so."""
    if task.state not in WAITING or not task.awaits or task.reason_code == ReasonCode.WAITING:
        return ""
    at = told_time(task.nominal_at)
    if approval_under_way(task) is not None:
        return _("waits for approval until %(at)s") % {"at": at}
    if ":" in task.awaits:
        return ""  # For the end of an earlier run.
    events = ", ".join(registry.titled_in(task.timeline, event) for event in task.awaits.split())
    return _("waits for %(events)s until %(at)s") % {"events": events, "at": at}


def not_to_decide(task: ScheduledTask) -> str:
    """Say why nobody can approve or reject it any more: who has decided, or that it is too late."""
    using = task._state.db or DEFAULT_DB_ALIAS
    when = registry.task(task.task_key)[1].when
    decided = None if when is None else first_met(declared_wait(task, when, using=using), using=using)
    if decided is None:
        return _("Nobody decided about it in time, or it has ended.")
    said = {"event": decided.name, "actor": decided.actor, "at": told_time(decided.recorded_at)}
    if decided.actor:
        return _("It was decided already: %(event)s by %(actor)s, %(at)s.") % said
    return _("It was decided already: %(event)s, %(at)s.") % said


@dataclass(frozen=True, slots=True)
class Undecided:
    """A task that waits until somebody decides; ``is_held``: it is on hold, may be decided, and runs when released."""

    task: ScheduledTask
    when: When
    is_held: bool = False

    @property
    def since(self) -> datetime:
        return self.until - self.when.offset.exact

    @property
    def until(self) -> datetime:
        return self.task.nominal_at

    @property
    def right(self) -> str:
        """The permission of those who may decide."""
        return self.when.approval.by if self.when.approval is not None else ""


def undecided(tasks: ScheduledTaskQuerySet, key: str, when: When, *, now: Moment) -> Iterator[ScheduledTaskQuerySet]:
    """The tasks of one kind that wait for a decision which nobody has made, each state by itself, by their due times."""
    # When the handler waits for something else, after the decision, the row has other events. A row that was made when the
    # approval had another name can be decided as well.
    asks = Q(awaits=" ".join(when.awaits)) | Q(awaits__gt="", attempt=0)
    # What is decided is due at once, but somebody may move it to a later time again.
    said = Event.objects.using(tasks.db).filter(
        entity_label=OuterRef("awaits_label"),
        entity_id=OuterRef("awaits_id"),
        name__in=when.awaits,
        recorded_at__gte=Coalesce(OuterRef("run__recorded_at"), OuterRef("run__started_at")),
        recorded_at__lt=OuterRef("nominal_at"),
    )
    causes = Q(pk=OuterRef("cause_id")) | Q(pk=OuterRef("run__started_by_id"))
    waiting = tasks.filter(
        asks, ~Exists(said.exclude(causes)), task_key=key, run__isnull=False, nominal_at__gt=now, scheduled_at__gt=now
    )
    for state in sorted(WAITING):
        yield waiting.filter(state=state).order_by("scheduled_at", "pk")


def asked_of_people(
    tasks: ScheduledTaskQuerySet, *, now: Moment, **_others: object
) -> Iterator[tuple[str, ScheduledTaskQuerySet]]:
    """What waits for a person: tasks that ask for approval."""
    for known in registry:
        for key, when in known.approvals.items():
            for part in undecided(tasks, key, when, now=now):
                yield "people", part


def still_asking(found: Iterable[Undecided], *, using: str) -> list[Undecided]:
    """Leave out those that are decided already, though moved since, and say which are on hold. Three statements."""
    found = [each for each in found if each.task.run_id]  # What is scheduled ad hoc asks for no approval.
    if not found:
        return []
    prefetch_related_objects([each.task for each in found], "run")
    met = met_among([_wait_of_undecided(each) for each in found], using=using)
    held = in_the_way([each.task for each in found], using=using)
    return [
        Undecided(each.task, each.when, each.task.pk in held)
        for each, is_decided in zip(found, met, strict=True)
        if not is_decided
    ]


def _wait_of_undecided(each: Undecided) -> Wait:
    """The wait of a task as its row has it. Its events are recorded for the entity that the row names."""
    task = each.task
    return Wait(
        events=tuple({*each.when.awaits, *task.awaits.split()}),
        key="",
        of=EntityRef(task.awaits_label, task.awaits_id),
        since=task.run.known_since if task.run is not None else task.created_at,
        until=task.nominal_at,
        but=causes_of(task),
    )
