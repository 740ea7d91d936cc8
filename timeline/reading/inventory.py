"""The inventory: each timeline as its code declares it, and how its tasks went."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from statistics import median
from typing import Any, Final, NamedTuple

from django.db.models import Count
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from timeline.definition import Definition, Recurring
from timeline.definition.names import first_paragraph
from timeline.features.machines.reading import StateEntry, states_of
from timeline.features.recurring.reading import Next, next_runs, next_slot, schedule_in_words
from timeline.hooks import hooks
from timeline.lifecycle import FINAL, State
from timeline.models import ScheduledTask
from timeline.registry import registry
from timeline.store.task_key_stats import recent_ends
from timeline.timing import EARLIEST
from timeline.timing.offsets import Offset
from timeline.told_times import how_long

A_DAY: Final = timedelta(days=1)

_OVERLAP: Final[Mapping[str, Promise]] = {
    "skip": gettext_lazy("a run is skipped while an earlier one is open"),
    "queue": gettext_lazy("a run waits while an earlier one is open"),
    "allow": gettext_lazy("runs may overlap"),
}
_CATCH_UP: Final[Mapping[str, Promise]] = {
    "latest": gettext_lazy("of the times that were missed, the last is made up for, up to %(within)s later"),
    "none": gettext_lazy("times that were missed are not made up for"),
    "all": gettext_lazy("all times that were missed are made up for, up to %(within)s later"),
}
_PERIOD: Final[Mapping[str, Promise]] = {
    "day": gettext_lazy("one run a day"),
    "week": gettext_lazy("one run a week"),
    "month": gettext_lazy("one run a month"),
}

# So many of the last ends are read for each task and final state. The median and the last end are of these.
SAMPLE: Final = 100


def rules_of(definition: Definition) -> Iterator[str]:
    """Say how many runs there may be, and what happens to runs that come too late or too early."""
    if definition.once:
        yield _("one run ever of the same key")
    if definition.key:
        yield _("a run of its own for each %(fields)s of the event") % {"fields": ", ".join(definition.key)}
    if definition.again:
        yield _("events that come while a run is open begin one more when it has finished")
    if definition.recurring is not None:
        yield from _rules_of_clock(definition.recurring)


def _rules_of_clock(recurring: Recurring) -> Iterator[str]:
    if recurring.once_per:
        yield str(_PERIOD[recurring.once_per])
    yield str(_OVERLAP[recurring.overlap])
    within = Offset(0, recurring.within.days, recurring.within % A_DAY)
    yield str(_CATCH_UP[recurring.catch_up]) % {"within": within.describe()}


@dataclass(frozen=True, slots=True, kw_only=True)
class StartEntry:
    """What starts a run: ``kind`` is ``event``, ``created``, ``clock`` (``next_at``: its next run) or ``after_run``."""

    kind: str
    said: str
    next_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEntry:
    """A task; an empty ``title`` or ``when``: it has none. ``held`` and ``waiting``: places of its limit."""

    name: str
    doc: str
    when: str
    last_end_at: datetime | None  # When one of the tasks that were due last ended; None: none did.
    last_end: str
    last_reason: str  # As a code.
    seconds: float | None  # Median duration of attempts that completed it lately.
    dead_letters: int  # How many are discarded, and not redriven.
    limit: str = ""  # How many may run at the same time, in words; empty: any number.
    held: int = 0
    waiting: int = 0
    rate: str = ""  # How many may begin within a time; empty: any number.
    title: str = ""

    @property
    def told_limit(self) -> str:
        """The limit and the places in use; empty: there is no limit."""
        said = {"limit": self.limit, "held": self.held, "waiting": self.waiting}
        return _("%(limit)s: %(held)d held, %(waiting)d waiting") % said if self.limit else ""

    @property
    def last_end_label(self) -> str:
        return str(State(self.last_end).label) if self.last_end else ""

    @property
    def took(self) -> str:
        return "" if self.seconds is None else how_long(self.seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEntry:
    """A step: the name of its method, and the first paragraph of its docstring."""

    name: str
    doc: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """A timeline. ``entity``: label, empty: the system's. ``rules``: in words. ``exits``: event → name of the exit."""

    name: str
    doc: str
    entity: str
    shadow: bool
    starts: list[StartEntry]
    rules: list[str]
    exits: dict[str, str]
    tasks: list[TaskEntry]
    steps: list[StepEntry]
    states: list[StateEntry] = field(default_factory=list)
    titles: dict[str, str] = field(default_factory=dict)  # Event, state, exit or condition → what people call it.

    @property
    def told_exits(self) -> list[tuple[str, str]]:
        """Event and exit, each with its title, if it has one."""
        told = {name: f"{title} ({name})" for name, title in self.titles.items()}
        return [(told.get(event, event), told.get(name, name)) for event, name in self.exits.items()]

    def as_data(self) -> dict[str, Any]:
        return asdict(self)


def inventory(
    definitions: Iterable[Definition] | None = None,
    *,
    following: Mapping[str, Next] | None = None,
    now: datetime,
    using: str,
) -> list[TimelineEntry]:
    """
    List timelines by name, in two statements; two more for limits. None: all that are known.

    ``following``: what their clocks start next. None: it is read here, in two statements at most.
    """
    known = sorted(registry if definitions is None else definitions, key=lambda definition: definition.name)
    keys = [definition.task_key(name) for definition in known for name in definition.tasks]
    ends: dict[str, list[ScheduledTask]] = defaultdict(list)
    for end in recent_ends(keys, FINAL, SAMPLE, using=using):
        ends[end.task_key].append(end)
    dead = ScheduledTask.objects.using(using).dead_letters().filter(task_key__in=keys)
    counts = dict(dead.values_list("task_key").annotate(count=Count("pk")).order_by())
    more: dict[str, dict[str, Any]] = defaultdict(dict)
    for about in hooks().inventories:
        for key, fields in about(known, using=using).items():
            more[key] |= fields
    found = _KnownOfRows(ends, counts, more, next_runs(known, using=using) if following is None else following)
    return [_entry(definition, found, now) for definition in known]


class _KnownOfRows(NamedTuple):
    """What rows say. By task key: last ends, dead letters, what features say; by timeline: what its clock starts."""

    ends: dict[str, list[ScheduledTask]]
    dead: dict[str, int]
    more: Mapping[str, Mapping[str, Any]]
    following: Mapping[str, Next]


def undocumented(definitions: Iterable[Definition]) -> list[str]:
    """Name timelines, tasks and steps without a docstring. Timers need none: they have no handler, only an event."""
    found = []
    for definition in definitions:
        found += [] if first_paragraph(definition.cls) else [definition.name]
        methods = {name: declared.method for name, declared in definition.tasks.items() if not declared.is_timer}
        methods |= {name: declared.method for name, declared in definition.steps.items()}
        found += [f"{definition.name}.{name}" for name, method in methods.items() if not first_paragraph(method)]
    return found


def _entry(definition: Definition, known: _KnownOfRows, now: datetime) -> TimelineEntry:
    return TimelineEntry(
        name=definition.name,
        doc=first_paragraph(definition.cls),
        entity=definition.label,
        shadow=definition.shadow,
        starts=[
            *_starts(definition, known.following.get(definition.name, Next()).begins_at, now),
            *_said_by_features(definition, known),
        ],
        rules=list(rules_of(definition)),
        exits=dict(definition.exits),
        tasks=[_task(definition, name, known) for name in definition.tasks],
        steps=[StepEntry(name=name, doc=first_paragraph(step.method)) for name, step in definition.steps.items()],
        states=states_of(definition),
        titles={name: definition.title_of(name) for name in definition.titles},
    )


def times_by_the_clock(*, now: datetime) -> Iterator[tuple[datetime, str]]:
    """The next time of each timeline that a clock starts, with its name, by the schedule alone. Nothing is read."""
    for known in registry:
        if known.recurring is not None and (at := next_slot(known.recurring, now=now)) is not None:
            yield at, known.name


def _starts(definition: Definition, begins_at: datetime | None, now: datetime) -> Iterator[StartEntry]:
    for start in definition.starts_on:
        if isinstance(start, str):
            yield StartEntry(kind="event", said=definition.titled(start))
        elif isinstance(start, Recurring):
            said = schedule_in_words(start, now=now, begins_at=begins_at)
            yield StartEntry(kind="clock", said=said, next_at=begins_at or next_slot(start, now=now))
        else:
            yield StartEntry(kind=start.kind, said=start.describe(definition))


def _said_by_features(definition: Definition, known: _KnownOfRows) -> Iterator[StartEntry]:
    """What a feature says of when tasks are due that have no schedule: an event is why they are there."""
    whens = (known.more.get(definition.task_key(name), {}).get("when") for name in definition.tasks)
    yield from (StartEntry(kind="event", said=when) for when in whens if when)


def _task(definition: Definition, name: str, known: _KnownOfRows) -> TaskEntry:
    declared, key = definition.tasks[name], definition.task_key(name)
    ends = known.ends
    last = max(ends[key], key=lambda end: end.finished_at or EARLIEST, default=None)
    took = [
        (end.finished_at - end.started_at).total_seconds()
        for end in ends[key]
        if end.state == State.COMPLETED and end.started_at and end.finished_at
    ]
    return TaskEntry(
        name=name,
        doc=first_paragraph(declared.method),
        last_end_at=last.finished_at if last else None,
        last_end=last.state if last else "",
        last_reason=last.reason_code if last else "",
        seconds=median(took) if took else None,
        dead_letters=known.dead.get(key, 0),
        title=declared.title,
        **{"when": declared.describe(), **known.more.get(key, {})},
    )
