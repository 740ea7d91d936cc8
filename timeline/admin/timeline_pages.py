"""The pages of timelines: all that there are with how they stand, and one as a picture with live counts on each task."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from timeline.admin.pages import Pages, policy_of
from timeline.admin.references import Called, called
from timeline.admin.subject import Reader
from timeline.definition.names import first_paragraph
from timeline.dialects import dialect_of
from timeline.features.machines.pictures import machine_picture
from timeline.features.plans.drift_query import look_at_oldest
from timeline.features.recurring.reading import Next, next_runs, next_slot, next_slots, told_there
from timeline.lifecycle import ReasonCode, State
from timeline.models import Hold, ScheduledTask, Scope, TimelineRun
from timeline.policy import TimelinePolicy
from timeline.reading.inventory import inventory
from timeline.reading.picture_shapes import Chip
from timeline.reading.tallies import LastRun, last_runs, tallies
from timeline.reading.timeline_pictures import starts_of, timeline_picture
from timeline.registry import registry
from timeline.store.bounded_counts import counted_apart
from timeline.store.multi_query import Words
from timeline.told_times import from_now

if TYPE_CHECKING:
    from timeline.definition import Definition
    from timeline.reading.tallies import Amount, RunTally, Tallies, TaskTally


FIRST: Final = 12  # Timelines of which a narrow screen says first when each runs next.
SLOTS: Final = 5  # Of the clock, that are told.
OLDEST: Final = 1_000  # Runs that are compared with what their timeline says now.
BY_CLOCK: Final = "clock"  # The choice of only those timelines that a clock starts.


class NextUp(NamedTuple):
    """
    What a timeline does next: a run that its clock starts, or the first of its tasks ahead, ``called``; whichever is sooner.
    ``there``: what the clock of the schedule shows then, if it differs.
    """

    at: datetime
    span: str
    called: Called | None
    there: str


class Line(NamedTuple):
    """
    A timeline in the table of all; None for ``runs`` and ``last``: they are not told.

    ``orphans``: open tasks that its code does not have any more. ``next``: None: nothing of it is ahead. ``is_held``: it is on
    hold as a whole.
    """

    name: str
    entity: str
    doc: str
    is_machine: bool
    is_in_shadow: bool
    url: str
    starts: list[str]
    chips: list[Chip]
    runs: RunTally | None
    last: ToldRun | None
    orphans: Amount | None
    next: NextUp | None
    is_held: bool


class ToldRun(NamedTuple):
    """The run that has ended last: when and how, and a count of those of its tasks that failed."""

    at: datetime | None
    how: str
    failed: Chip | None


class TimelinePages(Pages):
    """For who may view all tasks: what is counted is counted among those that the policy lets them see."""

    def inventory_view(self, request: HttpRequest) -> HttpResponse:
        """Show all timelines, by name, or those that a clock starts."""
        self._refuse_others(request)
        holds = Hold.objects.using(self.alias).open().filter(scope__in=[Scope.TIMELINE, Scope.EVERYTHING])
        asked: list[Any] = [
            Words(dialect_of(self.alias).sql("task_keys_there")),
            holds.order_by().values_list("target"),
        ]
        now, [there, held] = self.now_and(request, asked)
        every = sorted(registry, key=lambda definition: definition.name)
        chosen = BY_CLOCK if request.GET.get("starts") == BY_CLOCK else ""
        known = [definition for definition in every if definition.recurring] if chosen else every
        counted = self._counted(request, known, now, reasons=False, there=there)
        following = next_runs(known, using=self.alias)
        last = last_runs([definition.name for definition in known], using=self.alias) if counted.runs else {}
        due = self._next_due(known) if counted.runs else {}
        on_hold = {target for [target] in held}
        told = {name: self._told_run(request, run) for name, run in last.items()}
        lines = [self._line(each, counted, following.get(each.name, Next()), told, due, on_hold, now) for each in known]
        lines.sort(key=lambda line: (line.next is None, line.next.at if line.next else now, line.name))
        context = {
            "lines": lines,
            "first": lines[:FIRST],
            "more": max(len(lines) - FIRST, 0),
            "with_runs": bool(counted.runs),
            "chosen": chosen,
            "choices": [("", pgettext("timeline", "All")), (BY_CLOCK, _("By the clock only"))],
            "has_clocks": any(definition.recurring for definition in every),
        }
        return self.page(request, "inventory", pgettext("timeline", "Timelines"), now, context)

    def timeline_view(self, request: HttpRequest, name: str) -> HttpResponse:
        """Show one: its picture, how its tasks stand and went, and what its code says."""
        self._refuse_others(request)
        definition = next((known for known in registry if known.name == name), None)
        if definition is None:
            raise Http404(_("There is no such timeline."))
        last = TimelineRun.objects.using(self.alias).of_timeline(name).last_ended()[:1]
        now, [there, ended] = self.now_and(request, [Words(dialect_of(self.alias).sql("task_keys_there")), last])
        counted = self._counted(request, [definition], now, reasons=True, there=there)
        following = next_runs([definition], using=self.alias)
        [entry] = inventory([definition], following=following, now=now, using=self.alias)
        chips = {task: list(self._of_task(definition.task_key(task), counted)) for task in definition.tasks}
        context: dict[str, Any] = {
            "each": entry,
            "tasks": [(task, chips[task.name]) for task in entry.tasks],
            "slots": [(at, _there(definition, at)) for at in _slots(definition, following.get(name, Next()).past, now)],
            "runs": counted.runs.get(name),
            "last": self._told_run(request, LastRun(ended[0], 0)) if ended and counted.runs else None,
            "orphans": counted.orphans.get(name),
            "due_at": _first(definition, self._next_due([definition]))[0] if counted.runs else None,
            "oldest": look_at_oldest(definition, most=OLDEST, now=now, using=self.alias) if counted.runs else None,
            "of_timeline": self._list(timeline=name),
        }
        if definition.machine is not None:
            context["machine"] = machine_picture(definition, here=counted.states)
        else:
            context["picture"] = timeline_picture(definition, chips)
        return self.page(request, "timeline", name, now, context)

    def _refuse_others(self, request: HttpRequest) -> None:
        if not request.user.has_perm("timeline.view_scheduledtask"):
            raise PermissionDenied

    def _counted(
        self, request: HttpRequest, known: list[Definition], now: datetime, *, reasons: bool, there: list[str]
    ) -> Tallies:
        """
        Count what they may see. Runs are told only where the policy shows such a person all tasks. ``there``: keys that rows
        have.
        """
        sees_all = type(policy_of(request)).visible is TimelinePolicy.visible
        orphans = {key for key in there if key.partition(".")[0] in {each.name for each in known}}
        orphans -= {each.task_key(name) for each in known for name in each.tasks}
        seen = self.visible(request)
        return tallies(known, seen, reasons=reasons, runs=sees_all, orphans=sorted(orphans), now=now)

    def _told_run(self, request: HttpRequest, last: LastRun) -> ToldRun:
        failed, name = None, last.run.timeline
        if last.failed:
            said = ngettext("%(count)d task failed", "%(count)d tasks failed", last.failed) % {"count": last.failed}
            failed = Chip(said, "failed", self._list(timeline=name, state="discarded"), f"{said}, {name}")
        return ToldRun(last.run.ended_at, Reader(policy_of(request), request.user).end_of(last.run), failed)

    def _next_due(self, known: Iterable[Definition]) -> dict[str, datetime]:
        """Key of each kind of task → when the first of them is due that waits for its time: one look in an index for each."""
        tasks = ScheduledTask.objects.using(self.alias)
        asks = [
            (each.task_key(name), tasks.filter(task_key=each.task_key(name), state=state).order_by("scheduled_at"))
            for each in known
            for name in each.tasks
            for state in (State.RETRYABLE, State.SCHEDULED)
        ]
        found = counted_apart(asks, most=1, using=self.alias)
        return {key: counted.first_at for key, counted in found.items() if counted.first_at is not None}

    def _line(
        self,
        definition: Definition,
        counted: Tallies,
        following: Next,
        last: Mapping[str, ToldRun],
        due: Mapping[str, datetime],
        held: Collection[str],
        now: datetime,
    ) -> Line:
        return Line(
            name=definition.name,
            entity=definition.label,
            doc=first_paragraph(definition.cls),
            is_machine=definition.machine is not None,
            is_in_shadow=definition.shadow,
            url=self.address("timeline", definition.name),
            starts=starts_of(definition),
            chips=list(self._chips(counted.of(definition), definition.name, {"timeline": definition.name})),
            runs=counted.runs.get(definition.name),
            last=last.get(definition.name),
            orphans=counted.orphans.get(definition.name),
            next=_next_up(definition, following, due, now),
            is_held=any(target in held for target in ("", definition.name)),
        )

    def _of_task(self, key: str, counted: Tallies) -> Iterator[Chip]:
        tally = counted.tasks[key]
        yield from self._chips(tally, key, {"task": key})
        for code, amount in tally.cancelled.items():
            label = str(ReasonCode(code).label)
            text = _("%(count)s cancelled: %(reason)s") % {"count": amount, "reason": label}
            yield Chip(text, "cancelled", self._list(task=key, state="cancelled", reason=code), f"{text}, {key}")

    def _chips(self, tally: TaskTally, what: str, where: dict[str, str]) -> Iterator[Chip]:
        told: list[tuple[str, Amount, str, dict[str, str]]] = [
            ("open", tally.open, _("%(count)s open"), {}),
            ("overdue", tally.overdue, _("%(count)s overdue"), {"state": "overdue"}),
            ("failed", tally.failed, _("%(count)s failed in 7 days"), {"state": "discarded", "ended": "week"}),
        ]
        for kind, amount, said, narrowed in told:
            if amount:
                text = said % {"count": amount}
                yield Chip(text, kind, self._list(**where, **narrowed), f"{text}, {what}")

    def _list(self, **asked: str) -> str:
        return f"{self.address('changelist')}?{urlencode(asked)}"


def _next_up(definition: Definition, following: Next, due: Mapping[str, datetime], now: datetime) -> NextUp | None:
    """The sooner of the next run by the clock and the first task ahead."""
    begins_at = (following.begins_at or next_slot(definition.recurring, now=now)) if definition.recurring else None
    due_at, key = _first(definition, due)
    if begins_at is not None and (due_at is None or begins_at <= due_at):
        return NextUp(begins_at, from_now(begins_at, now), None, _there(definition, begins_at))
    return NextUp(due_at, from_now(due_at, now), called(key), "") if due_at is not None else None


def _first(definition: Definition, due: Mapping[str, datetime]) -> tuple[datetime | None, str]:
    """When the first task of a timeline is due, and its key."""
    keys = [key for name in definition.tasks if (key := definition.task_key(name)) in due]
    first = min(keys, key=due.__getitem__, default="")
    return due.get(first), first


def _slots(definition: Definition, past: datetime | None, now: datetime) -> list[datetime]:
    """The next slots: those whose runs have begun early, or were ended, are over."""
    if definition.recurring is None:
        return []
    return list(islice(next_slots(definition.recurring, now=max(now, past or now)), SLOTS))


def _there(definition: Definition, at: datetime | None) -> str:
    """What the clock of the schedule shows then, if it differs."""
    return told_there(at, definition.recurring.timezone) if definition.recurring and at else ""
