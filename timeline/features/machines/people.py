"""
What waits for people, by the time until when: machines in states that ask, and tasks that ask for approval. What has no such
time comes after all others, the longest wait first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from uuid import UUID

from django.db.models import CharField, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce

from timeline.features.waits.reading import Undecided, still_asking, undecided
from timeline.lifecycle import OPEN
from timeline.models import Event, RunEntry, ScheduledTask, TimelineRun
from timeline.payloads import clip
from timeline.registry import registry
from timeline.store.earliest import WALKED
from timeline.store.multi_query import gather
from timeline.store.transactions import AS_IT_IS

if TYPE_CHECKING:
    from timeline.definition import Definition
    from timeline.models.run import TimelineRunQuerySet
    from timeline.models.task import ScheduledTaskQuerySet
    from timeline.timing import When

    Some = TypeVar("Some", bound=QuerySet[Any, Any])


SHOWN: Final = 50  # Runs and tasks on a page.
MOST_SORTED: Final = (
    5_000  # Runs in a state of which the timers are sorted; of more, those that have waited for longest.
)
LONGEST: Final = 300  # The characters of a reason that are shown.
_OPEN: Final = sorted(OPEN)


class Place(NamedTuple):
    """Where something stands in the order: ``at`` is until when; of what has no such time, since when. ``key``: its id."""

    is_endless: bool
    at: datetime
    key: UUID


@dataclass(frozen=True, slots=True)
class Asking:
    """
    A run that waits for people, with the events that the reader may send. ``due_at``: of its earliest timer; None: no timer.
    """

    run: TimelineRun
    events: list[str]
    due_at: datetime | None

    @property
    def place(self) -> Place:
        """Where it stands."""
        assert self.run.state_at is not None  # noqa: S101 (each run of a machine has it)
        return Place(self.due_at is None, self.due_at or self.run.state_at, self.run.pk)


class PeoplePage(NamedTuple):
    """What waits for people, in order. ``last``: the place after which there is more; None: this is the end."""

    waiting: list[Asking | Undecided]
    last: Place | None


@dataclass(frozen=True, slots=True)
class FirstAsked:
    """
    The queries for what comes first. Of each kind and state the first few are read, in the order of an index.

    Args:
        tasks: Those that the reader may see.
        most: So many are wanted.
        runs: Whether the reader may see runs, too.
        timeline: Only of this one; empty: of all.
        after: The place to continue at; None: the first.
        among: Only these runs and tasks, by id; None: all.
    """

    tasks: ScheduledTaskQuerySet
    most: int
    runs: bool
    now: datetime
    timeline: str = ""
    after: Place | None = None
    among: Collection[UUID] | None = None

    def by_deadline(self) -> list[QuerySet[Any, Any]]:
        """Tasks that ask; and of runs that ask the first timer of each: id of the run, until when."""
        asked: list[QuerySet[Any, Any]] = [part[: self.most] for _when, part in self._approvals()]
        return asked + [part[: self.most] for part in self._timers()]

    def by_age(self) -> list[QuerySet[Any, Any]]:
        """
        Runs that ask and have no timer. Those that have one are passed over, so ask when no deadline is left: there are no more
        of them than were listed before.
        """
        timed = ScheduledTask.objects.using(self.tasks.db).filter(
            run=OuterRef("pk"), task_key__in=self._timer_keys(), state__in=_OPEN
        )
        beyond, after = Q(), self.after
        if after is not None and after.is_endless:
            beyond = Q(state_at__gte=after.at) & (Q(state_at__gt=after.at) | Q(pk__gt=after.key))
        return [self._among(runs.filter(~Exists(timed), beyond), "pk")[: self.most] for runs in self._asking()]

    def begin(self) -> list[QuerySet[Any, Any]]:
        """For two statements in all: this is of the first. Runs are read with and without timers; see ``read``."""
        runs: list[QuerySet[Any, Any]] = [part[: 2 * self.most] for part in self._asking()] if self.runs else []
        return [*self.by_deadline(), *runs]

    def go_on(self, found: Sequence[Sequence[Any]]) -> list[QuerySet[Any, Any]]:
        """Of the second: all runs that are needed, and which of those in ``found``, of the first, have timers."""
        tasks, due, runs = self.parts(found)
        using = self.tasks.db
        needed = {task.run_id for _when, task in tasks if task.run_id} | due.keys()
        timers = ScheduledTask.objects.using(using).filter(
            run__in=[run.pk for run in runs], task_key__in=self._timer_keys(), state__in=_OPEN
        )
        return [
            TimelineRun.objects.using(using).filter(pk__in=needed - {run.pk for run in runs}),
            timers.order_by().values_list("run_id"),
        ]

    def read(
        self,
        found: Sequence[Sequence[Any]],
        more: Sequence[Sequence[Any]],
        may_say: Callable[[TimelineRun], list[str]],
    ) -> list[Asking | Undecided]:
        """
        Put both together. ``may_say``: events that the reader may send. If fewer than are wanted have a deadline, then fewer
        than that are among the runs by age, of which twice as many were read.
        """
        tasks, due, runs = self.parts(found)
        others, timed = more
        known = {run.pk: run for run in [*others, *runs]}
        told = told_of(tasks, due, known)
        told += [Asking(run, [], None) for run in runs if (run.pk,) not in {*timed}]
        first = sorted(told, key=place_of)[: self.most]
        return [with_events(each, may_say) for each in first]

    def parts(
        self, found: Sequence[Sequence[Any]]
    ) -> tuple[list[tuple[When, ScheduledTask]], dict[UUID, datetime], list[TimelineRun]]:
        """What the queries have found: tasks, id of a run → until when, runs by age."""
        whens = [when for when, _part in self._approvals()]
        tasks = [(when, task) for when, part in zip(whens, found, strict=False) for task in part]
        timers = len(self._timers())
        rest = found[len(whens) :]
        due = {run_id: at for part in rest[:timers] for run_id, at in part}
        return tasks, due, [run for part in rest[timers:] for run in part]

    @property
    def _is_endless(self) -> bool:
        return self.after is not None and self.after.is_endless

    def _known(self) -> list[Definition]:
        return [known for known in registry if self.timeline in ("", known.name)]

    def _approvals(self) -> list[tuple[When, ScheduledTaskQuerySet]]:
        asked = (
            {} if self._is_endless else {key: when for each in self._known() for key, when in each.approvals.items()}
        )
        return [
            (when, self._beyond(part, "pk"))
            for key, when in asked.items()
            for part in undecided(self.tasks, key, when, now=self.now)
        ]

    def _asking(self) -> list[TimelineRunQuerySet]:
        states = [(name, state) for name, state in asking_states() if self.timeline in ("", name)]
        return [runs_asking(name, state, using=self.tasks.db) for name, state in states]

    def _timer_keys(self) -> list[str]:
        return [key for known in self._known() for key in _timers_of(known)]

    def _timers(self) -> list[QuerySet[Any, Any]]:
        """Of each kind and state, the first timers of runs that ask."""
        if not self.runs or self._is_endless:
            return []
        timers = ScheduledTask.objects.using(self.tasks.db)
        found: list[QuerySet[Any, Any]] = []
        for known in self._known():
            keys = _timers_of(known)
            sooner = timers.filter(
                Q(scheduled_at__lt=OuterRef("scheduled_at"))
                | Q(scheduled_at=OuterRef("scheduled_at"), pk__lt=OuterRef("pk")),
                run=OuterRef("run_id"),
                task_key__in=keys,
                state__in=_OPEN,
            )
            for key, (states, only_then) in keys.items():
                first = timers.filter(task_key=key)
                first = first.filter(~Exists(sooner)) if len(keys) > 1 else first
                ways = [first] if only_then else [self._of_some(first, known.name, state) for state in states]
                for state in _OPEN:
                    wanted = _by_kind(state) if only_then else state
                    parts = [self._beyond(way.filter(state=wanted), "run_id") for way in ways]
                    order = F("scheduled_at") if only_then else Coalesce("scheduled_at", "scheduled_at")
                    found += [part.order_by(order, "run_id").values_list("run_id", "scheduled_at") for part in parts]
        return found

    def _of_some(self, timers: ScheduledTaskQuerySet, timeline: str, state: str) -> ScheduledTaskQuerySet:
        """
        Those of runs that ask in this state. Where a timer may be there in other states as well, walking in its order might
        read all of these first; so the runs are read, and their timers sorted: hence no order that an index has.
        """
        runs = runs_asking(timeline, state, using=self.tasks.db)[:MOST_SORTED]
        return timers.filter(run__in=runs.values("pk"))

    def _among(self, part: Some, key: str) -> Some:
        return part if self.among is None else part.filter(**{f"{key}__in": self.among})

    def _beyond(self, part: ScheduledTaskQuerySet, key: str) -> ScheduledTaskQuerySet:
        part = self._among(part, key)
        if self.after is None:
            return part
        beyond = Q(scheduled_at__gt=self.after.at) | Q(**{f"{key}__gt": self.after.key})
        return part.filter(beyond, scheduled_at__gte=self.after.at)


def _by_kind(state: str) -> RawSQL:
    """
    The same state, so that PostgreSQL finds tasks by their kind. A state that it knows when it plans would let it take the
    index of all open tasks, which has the same order, and read those of all other kinds that are due before.
    """
    return RawSQL("(SELECT %s)", (state,), output_field=CharField())


def waiting_for_people(
    timeline: str = "",
    *,
    may_say: Callable[[TimelineRun], list[str]],
    tasks: ScheduledTaskQuerySet,
    after: Place | None = None,
    among: Collection[UUID] | None = None,
    now: datetime,
) -> PeoplePage:
    """
    A page of what waits for people, in at most five statements. ``tasks``: those that the reader may see. ``may_say``: events
    that the reader may send. An empty ``timeline``: all. ``after``: the place to continue at; None: the first. ``among``: only
    these runs and tasks, by id; None: all.
    """
    using = tasks.db
    first = FirstAsked(tasks, SHOWN + 1, True, now, timeline, after, among)
    settings = WALKED if among is None else AS_IT_IS
    asked, due, _runs = first.parts(gather(first.by_deadline(), settings=settings, using=using))
    is_last = len(asked) + len(due) <= SHOWN
    by_age = gather(first.by_age(), settings=settings, using=using) if is_last else []
    rested = [run for part in by_age for run in part]
    needed = {task.run_id for _when, task in asked if task.run_id} | due.keys()
    runs = TimelineRun.objects.using(using).in_bulk(list(needed))
    told = sorted([*told_of(asked, due, runs), *(Asking(run, [], None) for run in rested)], key=place_of)
    last = place_of(told[SHOWN - 1]) if len(told) > SHOWN else None
    shown = told[:SHOWN]
    undecided_yet = still_asking([each for each in shown if isinstance(each, Undecided)], using=using)
    shown = [each for each in shown if isinstance(each, Asking)] + undecided_yet
    return PeoplePage([with_events(each, may_say) for each in sorted(shown, key=place_of)], last)


def told_of(
    tasks: Sequence[tuple[When, ScheduledTask]], due: Mapping[UUID, datetime], runs: Mapping[Any, TimelineRun]
) -> list[Asking | Undecided]:
    """What has a deadline, from what was read of it. A run that has moved on in between is left out."""
    asking = set(asking_states())
    told: list[Asking | Undecided] = []
    for when, task in tasks:
        if (run := runs.get(task.run_id)) is not None:
            task.run = run
        told.append(Undecided(task, when))
    there = [(runs[pk], at) for pk, at in due.items() if pk in runs]
    return told + [Asking(run, [], at) for run, at in there if run.is_open and (run.timeline, run.state) in asking]


def with_events(each: Asking | Undecided, may_say: Callable[[TimelineRun], list[str]]) -> Asking | Undecided:
    """The same with the events that the reader may send."""
    return Asking(each.run, may_say(each.run), each.due_at) if isinstance(each, Asking) else each


def place_of(each: Asking | Undecided) -> Place:
    """Where it stands in the order."""
    return each.place if isinstance(each, Asking) else Place(False, each.task.scheduled_at, each.task.pk)


def _timers_of(known: Definition) -> dict[str, tuple[list[str], bool]]:
    """Keys of timers that may be there while a machine waits for people: in which such states, and whether in no others."""
    found = {}
    for name, task in known.tasks.items():
        if task.is_timer and task.when is not None and (states := known.waiting_in & set(task.when.during)):
            found[known.task_key(name)] = (sorted(states), states == set(task.when.during))
    return found


def whys_asked(found: Sequence[Asking | Undecided], *, using: str) -> list[QuerySet[Any, Any]]:
    """Ask for the events that moved runs to where they ask, and for those that started the runs of tasks: see ``whys_read``."""
    last = Q(pk__in=[])
    for each in found:
        last |= Q(run=each.run.pk, seq=each.run.moves) if isinstance(each, Asking) else Q()
    said = Event.objects.using(using).filter(pk=OuterRef("cause_id")).values("payload")[:1]
    moves = RunEntry.objects.using(using).filter(last).annotate(said=Subquery(said))
    starts = {
        each.task.run.started_by_id for each in found if isinstance(each, Undecided) and each.task.run is not None
    }
    events = Event.objects.using(using).filter(pk__in=[pk for pk in starts if pk is not None])
    return [moves.values_list("run_id", "event", "said"), events.values_list("pk", "payload")]


def whys_read(
    found: Sequence[Asking | Undecided],
    read: Sequence[Sequence[Any]],
    *,
    payload: bool,
    people: Callable[[TimelineRun], bool],
) -> dict[UUID, str]:
    """
    What these events said, as ``reason`` or ``why``: id of the run or task → text.

    ``payload``: whether the reader may read payloads; else only what a person wrote whom the machine had asked, if ``people``.
    """
    moves, events = read
    runs = {each.run.pk: each.run for each in found if isinstance(each, Asking)}
    said = {pk: told for pk, event, told in moves if payload or (event in _asks_of(runs[pk]) and people(runs[pk]))}
    started = dict(events) if payload else {}
    tasks = [each.task for each in found if isinstance(each, Undecided)]
    said |= {task.pk: started.get(task.run.started_by_id) for task in tasks if task.run is not None}
    texts = {pk: told.get("reason") or told.get("why") for pk, told in said.items() if told}
    return {pk: clip(text, LONGEST) for pk, text in texts.items() if isinstance(text, str)}


def _asks_of(run: TimelineRun) -> Collection[str]:
    return registry.timeline(run.timeline).asks


def first_due(run: TimelineRun) -> datetime | None:
    """Until when a run waits: when its first timer is due; None: it has none."""
    known = registry.about(run.timeline, run.entity_label)
    timers = ScheduledTask.objects.using(run._state.db).filter(run=run.pk, state__in=_OPEN)
    keys = list(_timers_of(known)) if known is not None else []
    return timers.filter(task_key__in=keys).order_by("scheduled_at").values_list("scheduled_at", flat=True).first()


def asking_states() -> Iterator[tuple[str, str]]:
    """Each machine, and each of its states that waits for people."""
    for known in registry:
        for state in sorted(known.waiting_in):
            yield known.name, state


def runs_asking(timeline: str, state: str, *, using: str) -> TimelineRunQuerySet:
    """Open runs of a machine in a state, the longest there first."""
    runs = TimelineRun.objects.using(using).open().filter(timeline=timeline, state=state, state__gt="")
    return runs.order_by("state_at", "pk")


def asked_of_people(
    tasks: ScheduledTaskQuerySet, *, runs: bool, **_others: object
) -> Iterator[tuple[str, TimelineRunQuerySet]]:
    """What waits for a person: runs in states that ask."""
    for name, state in asking_states() if runs else ():
        yield "people", runs_asking(name, state, using=tasks.db)
