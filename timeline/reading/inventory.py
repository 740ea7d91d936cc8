"""The inventory: each timeline as its code declares it, and how its tasks went."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from statistics import median
from typing import Any, Final, NamedTuple

from django.db.models import Count
from django.utils.translation import gettext as _

from timeline.definition import AfterRun, Definition, Recurring
from timeline.definition.titles import first_paragraph
from timeline.lifecycle import FINAL, State
from timeline.models import ScheduledTask
from timeline.reading.limits import limit_in_words, places_of
from timeline.reading.machines import StateEntry, states_of
from timeline.reading.rules import rules_of
from timeline.reading.schedules import next_slot, schedule_in_words
from timeline.reading.steps import how_long
from timeline.registry import registry
from timeline.store.kinds import recent_ends
from timeline.timing import EARLIEST

SAMPLE: Final = (
    100  # So many of the last ends are read for each task and final state. The median and the last end are of these.
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartEntry:
    """
    What starts a run.

    Args:
        kind: ``event``, ``created``, ``clock`` or ``after_run``.
        said: The name of the event; for other kinds, words.
        next_at: When the clock starts the next run, by its schedule.
    """

    kind: str
    said: str
    next_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEntry:
    """
    A task.

    Args:
        name: Name of the method.
        title: What people call it; empty: it has none.
        doc: First paragraph of its docstring; may be empty.
        when: Its schedule in words; empty: it has none.
        last_end_at: When one of the tasks that were due last ended; None: none did.
        last_end: The state in which it ended.
        last_reason: Why, as a code.
        seconds: Median duration of attempts that completed it lately.
        dead_letters: How many are discarded, and not redriven.
        limit: How many may run at the same time, in words; empty: any number.
        held, waiting: How many places its tasks hold, and how many of them wait for one.
    """

    name: str
    doc: str
    when: str
    last_end_at: datetime | None
    last_end: str
    last_reason: str
    seconds: float | None
    dead_letters: int
    limit: str = ""
    held: int = 0
    waiting: int = 0
    title: str = ""

    @property
    def told_limit(self) -> str:
        """The limit and the places in use; empty: there is no limit."""
        said = {"limit": self.limit, "held": self.held, "waiting": self.waiting}
        return _("%(limit)s: %(held)d held, %(waiting)d waiting") % said if self.limit else ""

    @property
    def last_end_label(self) -> str:
        """How it ended last, in words."""
        return str(State(self.last_end).label) if self.last_end else ""

    @property
    def took(self) -> str:
        """Its duration, for people."""
        return "" if self.seconds is None else how_long(self.seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEntry:
    """A step: the name of its method, and the first paragraph of its docstring."""

    name: str
    doc: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """
    A timeline.

    Args:
        name: Name of the timeline.
        doc: First paragraph of its docstring; may be empty.
        entity: Label of the model; empty for a system timeline.
        shadow: Whether its handlers are not entered.
        starts: What starts it.
        rules: Its other declarations about runs, in words.
        exits: Event → name of the exit.
        tasks, steps: In the declared order.
        states: For a machine, its states in the order of the table; empty for others.
    """

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

    def as_data(self) -> dict[str, Any]:
        """Write it as plain data."""
        return asdict(self)


def inventory(definitions: Iterable[Definition] | None = None, *, now: datetime, using: str) -> list[TimelineEntry]:
    """
    List timelines by name, in two statements; two more if there are limits.

    Args:
        definitions: The timelines to list; None: all that this process knows.
        now: Story time.
        using: Database alias whose tasks are counted.
    """
    known = sorted(registry if definitions is None else definitions, key=lambda definition: definition.name)
    keys = [definition.task_key(name) for definition in known for name in definition.tasks]
    ends: dict[str, list[ScheduledTask]] = defaultdict(list)
    for end in recent_ends(keys, FINAL, SAMPLE, using=using):
        ends[end.task_key].append(end)
    dead = ScheduledTask.objects.using(using).dead_letters().filter(task_key__in=keys)
    counts = dict(dead.values_list("task_key").annotate(count=Count("pk")).order_by())
    places = places_of([key for key in registry.limited() if key in set(keys)], using=using)
    return [_entry(definition, _Known(ends, counts, places), now) for definition in known]


class _Known(NamedTuple):
    """The data from rows: for each task key its last ends, its dead letters, and the places held and waited for."""

    ends: dict[str, list[ScheduledTask]]
    dead: dict[str, int]
    places: dict[str, tuple[int, int]]


def undocumented(definitions: Iterable[Definition]) -> list[str]:
    """
    Name the timelines, tasks and steps without a docstring. Timers need none: they have no handler, and the event says what
    they do.
    """
    found = []
    for definition in definitions:
        found += [] if first_paragraph(definition.cls) else [definition.name]
        methods = {name: declared.method for name, declared in definition.tasks.items() if not declared.is_timer}
        methods |= {name: declared.method for name, declared in definition.steps.items()}
        found += [f"{definition.name}.{name}" for name, method in methods.items() if not first_paragraph(method)]
    return found


def _entry(definition: Definition, known: _Known, now: datetime) -> TimelineEntry:
    return TimelineEntry(
        name=definition.name,
        doc=first_paragraph(definition.cls),
        entity=definition.label,
        shadow=definition.shadow,
        starts=list(_starts(definition, now)),
        rules=list(rules_of(definition)),
        exits=dict(definition.exits),
        tasks=[_task(definition, name, known) for name in definition.tasks],
        steps=[StepEntry(name=name, doc=first_paragraph(step.method)) for name, step in definition.steps.items()],
        states=states_of(definition),
    )


def _starts(definition: Definition, now: datetime) -> Iterator[StartEntry]:
    for start in definition.starts_on:
        if isinstance(start, str):
            yield StartEntry(kind="event", said=start)
        elif isinstance(start, Recurring):
            said = schedule_in_words(start, now=now)
            yield StartEntry(kind="clock", said=said, next_at=next_slot(start, now=now))
        elif isinstance(start, AfterRun):
            name = start.definition.name if start.definition else ""
            said = _("after a run of %(timeline)s (%(ended)s)") % {"timeline": name, "ended": start.ended}
            yield StartEntry(kind="after_run", said=said)
        else:
            yield StartEntry(kind="created", said=_("a new row of %(entity)s") % {"entity": definition.label})


def _task(definition: Definition, name: str, known: _Known) -> TaskEntry:
    declared, key = definition.tasks[name], definition.task_key(name)
    ends, (held, waiting) = known.ends, known.places.get(key, (0, 0))
    last = max(ends[key], key=lambda end: end.finished_at or EARLIEST, default=None)
    took = [
        (end.finished_at - end.started_at).total_seconds()
        for end in ends[key]
        if end.state == State.COMPLETED and end.started_at and end.finished_at
    ]
    return TaskEntry(
        name=name,
        doc=first_paragraph(declared.method),
        when=declared.describe(),
        last_end_at=last.finished_at if last else None,
        last_end=last.state if last else "",
        last_reason=last.reason_code if last else "",
        seconds=median(took) if took else None,
        dead_letters=known.dead.get(key, 0),
        limit=limit_in_words(declared.limit) if declared.limit else "",
        held=held,
        waiting=waiting,
        title=declared.title,
    )
