"""Machines: the state of a run, since when, which events it takes, and how it came there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from django.db.models import Case, F, JSONField, OuterRef, Q, QuerySet, Subquery, When
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from timeline.definition import Definition, Table, TableAnswer
from timeline.features.machines.choices import Choice, line_of, targets_of, told_way
from timeline.features.machines.table import led_to
from timeline.models import Event, RunEntry, ScheduledTask, TimelineRun
from timeline.payloads import clip
from timeline.registry import registry
from timeline.timing import told_time

if TYPE_CHECKING:
    from timeline.features.machines.table import Target

SHOWN = 50  # The latest entries of a run that are shown.
LONGEST = 300  # The characters of a reason that are shown.


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveLine:
    """
    One move of a run, or its beginning: ``seq`` 0, no ``from_state``. ``reason``: the answer of a person asked; ``id``: of its
    entry. ``timeline``: of the run, which knows what people call states and events.
    """

    seq: int
    at: datetime
    from_state: str
    to_state: str
    event: str
    actor: str
    reason: str = ""
    id: UUID | None = None
    timeline: str = ""

    @property
    def told_state(self) -> str:
        """The state that it led to, with its title, if it has one."""
        return registry.titled_in(self.timeline, self.to_state)

    @property
    def state_title(self) -> str:
        """What people call the state; empty: it has no title."""
        return registry.title_in(self.timeline, self.to_state)

    @property
    def event_title(self) -> str:
        """What people call the event; empty: it has no title, or there was none."""
        return registry.title_in(self.timeline, self.event)

    @property
    def told_event(self) -> str:
        """Its event, likewise; empty: it was begun by hand."""
        return registry.titled_in(self.timeline, self.event)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineLine:
    """The state of a run, the events that it takes, and its latest moves in order; ``is_cut``: there are earlier ones."""

    run: TimelineRun
    takes: list[str]
    moves: list[MoveLine]
    is_cut: bool

    @property
    def told(self) -> str:
        return state_of(self.run)

    @property
    def told_state(self) -> str:
        """Its state, with its title, if it has one."""
        return registry.titled_in(self.run.timeline, self.run.state)

    @property
    def state_title(self) -> str:
        """What people call its state; empty: it has no title."""
        return registry.title_in(self.run.timeline, self.run.state)

    @property
    def takes_in_words(self) -> str:
        """The events that it takes, for people: titles, or names where there are none."""
        return ", ".join(registry.title_in(self.run.timeline, event) or event for event in self.takes)

    @property
    def told_takes(self) -> str:
        return titled_events(self.run.timeline, self.takes)

    @property
    def titles(self) -> dict[str, str]:
        """What people call the states and events that it names; those without a title are left out."""
        moves = {name for move in self.moves for name in (move.from_state, move.to_state, move.event)}
        named = sorted({self.run.state, *self.takes, *moves})
        return {name: title for name in named if (title := registry.title_in(self.run.timeline, name))}


def state_of(run: TimelineRun) -> str:
    """Say in words in which state the run of a machine is: ``QUEUED since …``; empty: the run is not of a machine."""
    if not run.state or run.state_at is None:
        return ""
    state = registry.titled_in(run.timeline, run.state)
    return _("%(state)s since %(at)s") % {"state": state, "at": told_time(run.state_at)}


def titled_events(timeline: str, events: Iterable[str]) -> str:
    """Events for people, in one line: titles with names."""
    return ", ".join(registry.titled_in(timeline, event) for event in events)


def taken_by(run: TimelineRun) -> list[str]:
    """Events that the state of an open run takes, by name."""
    definition = registry.about(run.timeline, run.entity_label)
    if definition is None or definition.machine is None or not run.is_open:
        return []
    return sorted(definition.machine.takes(run.state))


def entries_to_tell(runs: QuerySet[TimelineRun], *, using: str) -> QuerySet[RunEntry]:
    """The query for the latest entries of runs, with the answers of people whom machines had asked; for ``machine_lines``."""
    asks = sorted({event for known in registry for event in known.asks})
    wrote = Event.objects.using(using).filter(pk=OuterRef("cause_id")).values("payload")
    latest = RunEntry.objects.using(using).filter(run__in=runs.values("pk"), seq__gt=F("run__moves") - SHOWN)
    asked = Case(When(event__in=asks, then=Subquery(wrote[:1])), default=None, output_field=JSONField())
    return latest.annotate(wrote=asked)


def machine_lines(
    runs: Iterable[TimelineRun],
    *,
    people: Callable[[TimelineRun], bool],
    read: Iterable[RunEntry] | None = None,
    using: str,
) -> list[MachineLine]:
    """
    Describe the runs of machines, in order: one statement, and one for the answers of people asked, if there are any.

    ``people``: whether to tell who moved a run. ``read``: the entries by ``entries_to_tell``; None: they are read here.
    """
    moving = [run for run in runs if run.state]
    entries = _entries_of(moving, using) if read is None else _by_run(read)
    told = [run for run in moving if people(run)]
    reasons = _reasons_of(told, entries, using) if read is None else _reasons_read(told, entries)
    return [
        MachineLine(
            run=run,
            takes=taken_by(run),
            moves=[_line(run, entry, people(run), reasons) for entry in entries[run.pk]],
            is_cut=run.moves >= SHOWN,
        )
        for run in moving
    ]


def told_state(task: ScheduledTask, *, now: datetime) -> Iterator[str]:  # noqa: ARG001 (as the hook gives it)
    """For the story of a task, say in which state its run is and which events it takes."""
    run = task.run
    if run is None or not run.state:
        return
    yield _("Its run is %(told)s.") % {"told": state_of(run)}
    if takes := titled_events(run.timeline, taken_by(run)):
        yield _("It takes %(events)s.") % {"events": takes}


def told_machine(line: MachineLine) -> Iterator[str]:
    """Describe the run of a machine in sentences: its state, the events it takes, and how it came there."""
    run = line.run
    name = f"{run.timeline} {run.key}".strip()
    yield _("%(name)s of %(entity)s is %(told)s.") % {"name": name, "entity": run.entity_ref, "told": line.told}
    if line.takes:
        yield _("It takes %(events)s.") % {"events": line.told_takes}
    for move in line.moves:
        said = " → ".join(filter(None, [registry.titled_in(run.timeline, move.from_state), move.told_state]))
        said = f"{said} ({move.told_event})" if move.event else said
        if move.actor:
            said = _("%(said)s, by %(actor)s") % {"said": said, "actor": move.actor}
        said = f"{said}: {move.reason}" if move.reason else said
        yield f"  {told_time(move.at)}  {said}"


def _entries_of(runs: Iterable[TimelineRun], using: str) -> dict[UUID, list[RunEntry]]:
    """The latest entries of each run; the run itself knows how many there are."""
    latest = Q()
    for run in runs:
        latest |= Q(run=run.pk, seq__gt=run.moves - SHOWN)
    return _by_run(RunEntry.objects.using(using).filter(latest) if latest else ())


def _by_run(read: Iterable[RunEntry]) -> dict[UUID, list[RunEntry]]:
    found: dict[UUID, list[RunEntry]] = defaultdict(list)
    for entry in sorted(read, key=lambda entry: entry.seq):
        found[entry.run_id].append(entry)
    return found


def _reasons_read(runs: Iterable[TimelineRun], entries: Mapping[UUID, Sequence[RunEntry]]) -> dict[UUID, str]:
    """The same as ``_reasons_of``, for entries that were read with the answers of people."""
    told = {
        entry.cause_id: wrote.get("reason")
        for run in runs
        for entry in entries.get(run.pk, ())
        if entry.event in _asks_of(run) and entry.cause_id and (wrote := _wrote(entry))
    }
    return {pk: clip(said, LONGEST) for pk, said in told.items() if isinstance(said, str)}


def _wrote(entry: RunEntry) -> Mapping[str, Any] | None:
    """The answer that was read with an entry by the query of ``entries_to_tell``."""
    wrote: Mapping[str, Any] | None = entry.wrote  # type: ignore[attr-defined]
    return wrote


def _asks_of(run: TimelineRun) -> Collection[str]:
    definition = registry.about(run.timeline, run.entity_label)
    return definition.asks if definition is not None else ()


def _reasons_of(runs: Iterable[TimelineRun], entries: Mapping[UUID, Sequence[RunEntry]], using: str) -> dict[UUID, str]:
    """The reasons of people whom these runs had asked: id of the event → the reason."""
    causes = set()
    for run in runs:
        asks = _asks_of(run)
        causes |= {entry.cause_id for entry in entries.get(run.pk, ()) if entry.event in asks and entry.cause_id}
    told = Event.objects.using(using).filter(pk__in=causes).values_list("pk", "payload") if causes else ()
    return {pk: clip(said, LONGEST) for pk, payload in told if isinstance(said := payload.get("reason"), str)}


def _line(run: TimelineRun, entry: RunEntry, people: bool, reasons: Mapping[UUID, str]) -> MoveLine:
    return MoveLine(
        seq=entry.seq,
        at=entry.at,
        from_state=entry.from_state,
        to_state=entry.to_state,
        event=entry.event,
        actor=entry.actor if people else "",
        reason=reasons.get(entry.cause_id, "") if people and entry.cause_id else "",
        id=entry.pk,
        timeline=run.timeline,
    )


def answer_in_words(answer: TableAnswer) -> str:
    """Describe in words an event that leads to no named state."""
    words = {
        TableAnswer.BACK: pgettext("timeline", "back"),
        TableAnswer.STAY: _("the same, anew"),
        TableAnswer.IGNORE: pgettext("timeline", "nothing"),
    }
    return words[answer]


class EdgeEntry(NamedTuple):
    """One of several ways of an event, with its condition and its effect in words; empty: it has none."""

    target: str
    condition: str
    effect: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StateEntry:
    """
    A state of a machine. ``takes``: event → next state, ``BACK``, ``STAY`` or ``IGNORE``; empty: it is an end. Of an event with
    conditions or effects it is the first, and ``choices`` has all. ``titles``: what people call it, and the names in ``takes``;
    those without a title are left out.
    """

    name: str
    takes: dict[str, str]
    initial: bool
    working: bool
    end: bool
    titles: dict[str, str] = field(default_factory=dict)
    choices: dict[str, list[EdgeEntry]] = field(default_factory=dict)

    @property
    def lines(self) -> list[str]:
        """The events it takes, in words."""
        answers = {answer.value: answer for answer in TableAnswer}
        told = {name: f"{title} ({name})" for name, title in self.titles.items()}
        said = [
            (event, edge)
            for event, to in self.takes.items()
            for edge in self.choices.get(event, [EdgeEntry(to, "", "")])
        ]
        return [
            line_of(
                told.get(event, event),
                told_way(edge.condition, edge.effect),
                answer_in_words(answers[edge.target]) if edge.target in answers else told.get(edge.target, edge.target),
            )
            for event, edge in said
        ] or [_("an end")]

    @property
    def title(self) -> str:
        return self.titles.get(self.name, "")

    @property
    def told(self) -> str:
        """The same events in one line."""
        return ", ".join(self.lines)


def states_of(definition: Definition) -> list[StateEntry]:
    """The states of a machine in the order of its table; none of another timeline."""
    table = definition.machine
    return [] if table is None else [_state(definition, table, state) for state in table.states]


def _named(target: Target) -> str:
    return target.value if isinstance(target, TableAnswer) else str(target)


def _state(definition: Definition, table: Table, state: str) -> StateEntry:
    takes = table.takes(state)
    named = [state, *sorted(takes), *(to for to in led_to(takes) if isinstance(to, str))]
    return StateEntry(
        name=state,
        takes={event: _named(targets_of(to)[0]) for event, to in sorted(takes.items())},
        choices={
            event: [EdgeEntry(_named(edge.target), edge.condition, edge.effect) for edge in to.edges]
            for event, to in sorted(takes.items())
            if isinstance(to, Choice)
        },
        initial=state == table.initial,
        working=state in table.working,
        end=state in table.ends,
        titles={name: title for name in named if (title := definition.title_of(name))},
    )
