"""``Machine``: a timeline with a table of states."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.conf import settings
from django.utils.translation import gettext_lazy as _

from timeline.definition.check_timelines import NAMED
from timeline.definition.handlers import Task
from timeline.definition.timelines import Timeline
from timeline.exceptions import DefinitionError, InvalidInput, MoveNotAllowed, UnknownMachineEvent
from timeline.features.machines.choices import Choice
from timeline.features.machines.parse import (
    Unreadable,
    owner_problems,
    payload_problems,
    read_asks,
    read_errors,
    read_table,
    table_problems,
    texts_of,
)
from timeline.features.machines.rules import mirror_problems
from timeline.features.machines.table import UNSURE, Table, TableAnswer, Then
from timeline.features.machines.timers import Timers, read_timers
from timeline.features.steps.declaration import Step
from timeline.payloads import as_text
from timeline.suggestions import did_you_mean, near

if TYPE_CHECKING:
    from timeline.definition.definitions import Definition
    from timeline.features.machines.parse import Ask, Who
    from timeline.features.machines.table import Answer, Table
    from timeline.models import TimelineRun

# What a machine is asked for, now or later, so no task of one may be called that.
OPTIONS: Final = frozenset(
    {
        *("table", "initial", "working", "payloads", "next", "timers", "errors", "asks", "tells", "mirror"),
        *("most_moves", "spinning", "visits", "avisits"),
    }
)
METHODS: Final = frozenset({"next", "visits", "avisits"})
__all__ = ["Machine", "TableAnswer", "Then", "known_state", "table_of", "unknown_event"]


def read_tells(declared: object, table: Table, *, starts: Collection[str]) -> frozenset[str]:
    """The states and events that a machine tells, as plain text. ``Unreadable``: the first mistake."""
    if isinstance(declared, str) or not isinstance(declared, Collection):
        raise Unreadable(f"has tells = {declared!a:.60}.", "Give states and events, as a tuple.")
    moving = {event for state in table.states for event in table.takes(state) if table.moves(state, event)}
    known = {*table.states, *moving, *map(as_text, starts)}
    for name in declared:
        if isinstance(name, str) and as_text(name) in known:
            continue
        if isinstance(name, str) and as_text(name) in table.events:
            remedy = "Leave it out: only what moves a run is told."
            raise Unreadable(f"tells {as_text(name)!r}, which its table only ignores.", remedy)
        remedy = did_you_mean(as_text(name) if isinstance(name, str) else "", known, otherwise="Name one of its table.")
        raise Unreadable(f"tells {name!a:.60}, which is no state and no event of it.", remedy)
    return frozenset(as_text(name) for name in declared)


class Machine(Timeline, abstract=True):
    """
    A timeline whose runs are in a state, and move by a table: nothing else moves them.

    ``emit`` moves the open runs of the entity, in the caller's transaction: an event that their state does not take raises
    before anything is written. A run that comes to an end of the table has ended. Tasks are declared as in any timeline; a
    machine may have none.
    """

    table: ClassVar[Mapping[Any, Mapping[Any, Any]]]
    """State → event → next state, ``BACK``, ``STAY`` or ``IGNORE``. An end has an empty row. The rows ``WORKING`` and ``OPEN``
    stand for several states. Names may be members of a ``StrEnum``."""
    initial: ClassVar[str]
    """The state in which a run begins."""
    working: ClassVar[Collection[str]] = ()
    """States that the row ``WORKING`` is about: those in which something is being done."""
    payloads: ClassVar[Mapping[str, type]] = {}
    """Event → what its payload has to be: a dataclass or a TypedDict."""
    timers: ClassVar[Mapping[Any, Any]] = {}
    """Event → when it comes by itself: ``on(…)``, ``after(…)``, or a time of a field. A rest, or several → ``never``."""
    errors: ClassVar[Mapping[type[Exception], str]] = {}
    """Class of an exception that a handler raises → the event that it means. Of several classes, the nearest counts."""
    most_moves: ClassVar[int] = 1_000
    """How many moves of a run its handlers and timers may make within an hour; a task that would make one more is discarded."""
    spinning: ClassVar[str] = ""
    """The event that moves the run instead, if its state takes it. Empty: none."""
    asks: ClassVar[Mapping[Any, Who | Ask | Collection[Who]]] = {}
    """Event → who may send it: a permission ``app.codename``, ``OWNER``, or several of these; with words for its button,
    ``ask(_("It can go on"), by="app.codename")``. While the run's state takes the event, it is a button in the admin, and the
    API takes it from these people."""
    tells: ClassVar[Collection[str]] = ()
    """States that it reaches, and events that move it, that webhooks tell."""
    mirror: ClassVar[str] = ""
    """A ``StateField`` of the entity that shows the state, written with each move. Empty: none."""

    _options = NAMED | (OPTIONS - METHODS)

    @classmethod
    def next(cls, state: str, event: str) -> Answer:
        """
        Say what the table says. Asks no database.

        Returns:
            The next state as text; or ``BACK``, ``STAY`` or ``IGNORE``.

        Raises:
            TransitionNotAllowed: if this state does not take the event.
            UnknownMachineEvent: if no state does.
            InvalidInput: if there is no such state, or if it depends on conditions.
        """
        table = table_of(cls.definition)
        state = known_state(cls.definition, "state", state)
        event = as_text(event)
        if event not in table.events:
            raise unknown_event(cls.definition, event)
        if event not in (takes := table.takes(state)):
            raise MoveNotAllowed(cls.definition.name, "", state, event, sorted(takes), ended=state in table.ends)
        if isinstance(to := takes[event], Choice):
            said = {"targets": ", ".join(dict.fromkeys(map(str, to.targets)))}
            problem = _("leads to one of %(targets)s, by what conditions say.")
            raise InvalidInput("event", problem, _("Emit it: they are asked of an entity."), **said)
        return to

    def visits(self, state: str, *, since: str = "") -> int:
        """
        Count how often this run has entered a state, this time included: ``self.visits(S.OTP_SUBMITTING) >= 3``.

        ``since``: only since the run last entered that state. ``InvalidInput`` if there is no such state, or no run.
        """
        return self._run_to_count().visits(*self._known(state, since))

    async def avisits(self, state: str, *, since: str = "") -> int:
        """``visits``, for handlers declared with ``async def``."""
        return await self._run_to_count().avisits(*self._known(state, since))

    def _known(self, state: str, since: str) -> tuple[str, str]:
        return known_state(self.definition, "state", state), since and known_state(self.definition, "since", since)

    def _run_to_count(self) -> TimelineRun:
        if self.run is None:
            raise InvalidInput("state", _("there is no run to count it in."), _("Ask it in a task of a run."))
        return self.run

    @classmethod
    def _read_table(cls) -> Table:
        cls._check_names()
        try:
            if missing := [name for name in ("table", "initial") if not hasattr(cls, name)]:
                remedy = "A machine has a table, and the state in which it begins; or declare it abstract=True."
                raise Unreadable(f"has no {missing[0]}.", remedy)
            table = read_table(cls.table, initial=cls.initial, working=cls.working)
        except Unreadable as error:
            raise DefinitionError(cls.__name__, error.problem, error.remedy) from None
        members = type(cls.initial) if isinstance(cls.initial, Enum) else None
        for problem, remedy in table_problems(table, members=members):
            raise DefinitionError(cls.__name__, problem, remedy)
        cls._check_events(table)
        for problem, remedy in mirror_problems(cls.mirror, entity=cls.entity, key=cls.key):
            raise DefinitionError(cls.__name__, problem, remedy)
        return table

    @classmethod
    def _check_names(cls) -> None:
        """See that options are none of its methods."""
        for name in sorted(OPTIONS):
            if isinstance(getattr(cls, name, None), Task | Step):
                remedy = f"Use another than {', '.join(sorted(OPTIONS))}."
                raise DefinitionError(cls.__name__, "is the name of an option of a machine.", remedy, name)

    @classmethod
    def _check_events(cls, table: Table) -> None:
        """See that events mean one thing each."""
        if cls.again is True:
            remedy = "Name an event in starts_on: once a run has ended, it begins another."
            raise DefinitionError(
                cls.__name__, "has again = True, which begins one more of what nothing is left of.", remedy
            )
        exits = cls.exits if isinstance(cls.exits, Mapping) else {}
        if twice := sorted(table.events & set(exits)):
            remedy = "Keep one: an exit ends the run in whatever state, and so does a row OPEN that leads to an end."
            raise DefinitionError(cls.__name__, f"has {twice[0]!r} in its table and among its exits.", remedy)
        starts = cls.starts_on if isinstance(cls.starts_on, tuple) else (cls.starts_on,)
        known = {*table.events, *exits, *(start for start in starts if isinstance(start, str))}
        for problem, remedy in payload_problems(cls.payloads, known):
            raise DefinitionError(cls.__name__, problem, remedy)

    @classmethod
    def _conduct(cls) -> dict[str, Any]:
        table = cls._read_table()
        try:
            timers: Timers = read_timers(cls.timers, table)
            errors = read_errors(cls.errors, table)
            asks = read_asks(cls.asks, table)
            if type(cls.most_moves) is not int or not 1 <= cls.most_moves < 2**31:
                raise Unreadable(f"has most_moves = {cls.most_moves!a:.60}.", "Use a whole number from 1 on.")
            spinning = as_text(cls.spinning) if isinstance(cls.spinning, str) else cls.spinning
            if spinning and spinning not in table.events:
                remedy = did_you_mean(spinning, table.events, otherwise="Name an event of its table, or leave it out.")
                raise Unreadable(f"has spinning = {spinning!a:.60}, which is no event of its table.", remedy)
            if spinning and (state := table.unsure(spinning, table.states)):
                raise Unreadable(f"has spinning = {spinning!r}, which {state!r} takes by conditions alone.", UNSURE)
            starts = cls.starts_on if isinstance(cls.starts_on, tuple) else (cls.starts_on,)
            tells = read_tells(cls.tells, table, starts={start for start in starts if isinstance(start, str)})
        except Unreadable as error:
            raise DefinitionError(cls.__name__, error.problem, error.remedy) from None
        for problem, remedy in owner_problems(asks, has_owner=bool(cls.owner) or _is_account(cls.entity)):
            raise DefinitionError(cls.__name__, problem, remedy)
        conduct = {"machine": table, "timers": timers, "errors": errors, "asks": asks, "tells": tells}
        return {**conduct, "most_moves": cls.most_moves, "spinning": spinning}

    @classmethod
    def _payload_types(cls) -> Mapping[str, type]:
        return texts_of(cls.payloads)


def _is_account(entity: object) -> bool:
    """Whether entities are users of the site, who own what is about them."""
    return isinstance(entity, str) and entity.lower() == settings.AUTH_USER_MODEL.lower()


def table_of(definition: Definition) -> Table:
    """The table of a machine; raises ``InvalidInput`` if it is none."""
    if definition.machine is None:
        problem = _("%(name)r is a timeline without a table.")
        raise InvalidInput("machine", problem, _("Name a machine."), name=definition.name)
    return definition.machine


def known_state(definition: Definition, field: str, state: object) -> str:
    """Give a state of the machine as plain text; raises ``InvalidInput`` for the field if it has no such state."""
    known = table_of(definition).states
    named = as_text(state) if isinstance(state, str) else ""
    if named not in known:
        meant = near(named, known, most=1) or known
        said = {"state": f"{named or state!a:.60}", "machine": definition.name, "near": ", ".join(meant)}
        raise InvalidInput(field, _("%(state)s is no state of %(machine)s."), _("Give one such as %(near)s."), **said)
    return named


def unknown_event(definition: Definition, event: str) -> UnknownMachineEvent:
    """Say that no state of a machine takes an event, and which may be meant."""
    known = sorted(table_of(definition).events)
    return UnknownMachineEvent(definition.name, event, near(event, known), known)
