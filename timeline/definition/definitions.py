"""``Definition``: what is known of a timeline once it is declared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from timeline.definition.handlers import Task
from timeline.definition.starts import AfterRun, Created
from timeline.exceptions import InvalidInput
from timeline.features.machines.parse import AskedEvent
from timeline.features.machines.table import BACK, IGNORE, Table, Target
from timeline.features.machines.timers import Timers
from timeline.features.recurring.declaration import Recurring
from timeline.features.steps.declaration import Step, code_of, kept

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

    from timeline.definition.timelines import Timeline
    from timeline.timing import When


MAX_KEY: Final = 100


def key_from(payload: Mapping[str, Any], fields: Sequence[str], *, timeline: str) -> str:
    """
    Make a key of fields of an event's payload: ``42:3``. A colon in one of several values is ``%3A``, and ``%`` then ``%25``.

    ``InvalidInput`` names a field that is missing, or neither text nor a whole number.
    """
    values = [_value(payload, name, timeline) for name in fields]
    if len(values) > 1:
        values = [value.replace("%", "%25").replace(":", "%3A") for value in values]
    key = ":".join(values)
    if len(key) > MAX_KEY:
        problem = _("makes a key of %(size)s characters for the timeline %(timeline)s.")
        remedy = _("Give shorter values of %(names)s: %(most)s characters at most.")
        said = {"size": len(key), "timeline": timeline, "names": ", ".join(fields), "most": MAX_KEY}
        raise InvalidInput("payload", problem, remedy, **said)
    return key


def _value(payload: Mapping[str, Any], name: str, timeline: str) -> str:
    value = payload.get(name)
    if value == "" or isinstance(value, bool) or not isinstance(value, str | int):
        problem = _("has %(value)s as %(name)s, by which the timeline %(timeline)s tells runs apart.")
        remedy = _("Give text or a whole number.")
        shown = repr(value)[:60] if name in payload else pgettext_lazy("timeline", "nothing")
        raise InvalidInput("payload", problem, remedy, value=shown, name=name, timeline=timeline)
    return str(value)


@dataclass(frozen=True, kw_only=True)
class Definition:
    """
    A timeline as declared.

    Args:
        name: First half of its task keys.
        label: The entity's model, ``accounts.user``; empty for a system timeline.
        starts_on: Names of events, and perhaps ``created()``, ``after_run(…)`` or ``daily(…)`` and its kin.
        exits: Name of event → name of the exit, kept as the reason.
        tasks: Name of method → task, in the order declared; ``steps`` likewise.
        once: Whether an entity has one run ever for each key.
        key: Fields of the starting event's payload, which make the run's key; none: runs have no key.
        again: Whether what comes while a run is open begins one more when that has finished.
        search: Fields of the entity by which people find it; none: those of its own admin.
        titles: Event, state, exit or condition → what people call it.
        errors: Class of what a handler of a machine raises → the event that it means.
        asks: Event → who may say it, and its title.
        most_moves: So many moves of a machine's run within an hour by handlers and timers; then ``spinning`` comes, if any.
        tells: States of a machine, and events that move it, of which those outside are told.
    """

    cls: type[Timeline]
    name: str
    label: str
    starts_on: tuple[str | Created | AfterRun | Recurring, ...]
    exits: Mapping[str, str]
    tasks: Mapping[str, Task[Any, ..., Any]]
    steps: Mapping[str, Step[Any, ..., Any]]
    shadow: bool
    once: bool = False
    key: tuple[str, ...] = ()
    again: bool = False
    search: tuple[str, ...] = ()
    titles: Mapping[str, str | StrPromise] = field(default_factory=dict)
    machine: Table | None = None
    payloads: Mapping[str, type] = field(default_factory=dict)
    timers: Timers = field(default_factory=Timers)
    errors: Mapping[type[Exception], str] = field(default_factory=dict)
    asks: Mapping[str, AskedEvent] = field(default_factory=dict)
    most_moves: int = 0
    spinning: str = ""
    tells: frozenset[str] = frozenset()

    def run_key(self, payload: Mapping[str, Any]) -> str:
        """The key of a run, ``42:3``, from the payload of its event; ``InvalidInput`` as in ``key_from``."""
        return key_from(payload, self.key, timeline=self.name) if self.key else ""

    def task_key(self, task_name: str) -> str:
        """The key under which rows of the task are stored."""
        return f"{self.name}.{task_name}"

    def title_of(self, name: str) -> str:
        """What people call an event, a state, an exit or a condition, in the language of the moment; empty: it has no title."""
        return " ".join(str(self.titles.get(name, "")).split())

    def titled(self, name: str) -> str:
        """An event, a state or an exit for people: its title, followed by its name; without a title, only the name."""
        title = self.title_of(name)
        return f"{title} ({name})" if title else name

    @property
    def has_states(self) -> bool:
        """Whether its runs are in states, by a table."""
        return self.machine is not None

    @property
    def states(self) -> tuple[str, ...]:
        """All states that its runs may be in, in the order of its table."""
        return self.machine.states if self.machine is not None else ()

    @property
    def initial(self) -> str:
        """The state that its runs begin in; empty: they are in none."""
        return self.machine.initial if self.machine is not None else ""

    @property
    def has_effects(self) -> bool:
        """Whether something is done on the way of a move of its runs."""
        return self.machine is not None and self.machine.has_effects

    @cached_property
    def mirror(self) -> str:
        """Name of the entity's field in which a machine shows its state; empty: in none."""
        return str(getattr(self.cls, "mirror", "")) if self.has_states else ""

    @cached_property
    def code(self) -> str:
        """Changes when the code changes that takes the steps: 16 hex digits."""
        return code_of(self.cls)

    @cached_property
    def kept_code(self) -> str:
        """The code as a record of a step keeps it."""
        return kept(self.code)

    @cached_property
    def asked_in(self) -> Mapping[str, tuple[str, ...]]:
        """State of a machine → events that it asks people for there, sorted; without those of which nobody is asked."""
        table = self.machine
        if table is None or not self.asks:
            return {}
        found = {
            state: tuple(sorted(event for event in self.asks if table.moves(state, event))) for state in table.states
        }
        return {state: events for state, events in found.items() if events}

    def button_of(self, event: str) -> str:
        """What the button of an event says: the words of ``asks``, else its title, else its name."""
        asked = str(self.asks[event].title) if event in self.asks else ""
        return asked or self.title_of(event) or event

    @cached_property
    def waiting_in(self) -> frozenset[str]:
        """States of a machine that wait for people: their own rows ask for an event, not one that all open states take."""
        rows = self.machine.rows if self.machine is not None else {}
        return frozenset(state for state, row in rows.items() if self.asks.keys() & row.keys())

    @cached_property
    def approvals(self) -> Mapping[str, When]:
        """Key of a task that asks for approval → when it runs."""
        whens = {self.task_key(name): task.when for name, task in self.tasks.items() if task.approval is not None}
        return {key: when for key, when in whens.items() if when is not None}

    @cached_property
    def recurring(self) -> Recurring | None:
        """When it starts by the clock; None: it does not."""
        return next((start for start in self.starts_on if isinstance(start, Recurring)), None)

    @property
    def events(self) -> set[str]:
        """Names of those that start, move or end its runs, or that its tasks wait for."""
        named = {start for start in self.starts_on if isinstance(start, str)}
        named |= {*self.exits, *(self.machine.events if self.machine is not None else ())}
        return named.union(*(task.when.awaits for task in self.tasks.values() if task.when))

    @cached_property
    def fanned_out(self) -> frozenset[str]:
        """Names of the tasks that others fan out."""
        return frozenset(name for name, task in self.tasks.items() if task.when is not None and task.when.is_for_each)

    @cached_property
    def repeated(self) -> frozenset[str]:
        """Names of the tasks that come again and again."""
        return frozenset(name for name, task in self.tasks.items() if task.is_repeated)

    @cached_property
    def in_states(self) -> frozenset[str]:
        """Names of the tasks that are bound to states of a machine."""
        return frozenset(name for name, task in self.tasks.items() if task.is_in_state)

    @cached_property
    def bound_states(self) -> frozenset[str]:
        """States of a machine that tasks are bound to."""
        whens = (self.tasks[name].when for name in self.in_states)
        return frozenset(state for when in whens if when is not None for state in when.during)

    @cached_property
    def keys_beside_states(self) -> frozenset[str]:
        """Keys of the tasks that are bound to no state."""
        return frozenset(self.task_key(name) for name in self.tasks if name not in self.in_states)

    @cached_property
    def bound_events(self) -> frozenset[str]:
        """Events of a machine by which each move leaves a state that tasks are bound to, or comes to one."""
        if self.machine is None:
            return frozenset()
        loose = {event for state, event, to in self.machine.answers() if to is IGNORE or self._is_loose(state, to)}
        return self.machine.events - loose

    @cached_property
    def loose_events(self) -> frozenset[str]:
        """Events of a machine by which no move leaves a state that tasks are bound to, nor comes to one."""
        if self.machine is None:
            return frozenset()
        bound = {
            event
            for state, event, to in self.machine.answers()
            if not self._is_loose(state, to) or (to is BACK and self.bound_states)
        }
        return self.machine.events - bound

    def _is_loose(self, state: str, to: Target) -> bool:
        """Whether no task is bound to either; what BACK leads to is not known here."""
        return self.bound_states.isdisjoint({state, str(to)})

    @cached_property
    def backing_off(self) -> frozenset[str]:
        """States of a machine in which something comes later with each try."""
        whens = (task.when for task in self.tasks.values())
        return frozenset(state for when in whens if when is not None and when.backoff for state in when.during)

    @cached_property
    def aside(self) -> frozenset[str]:
        """Names of the tasks that keep no run open."""
        return frozenset(name for name, task in self.tasks.items() if task.options.aside)

    @cached_property
    def is_spread(self) -> bool:
        """Whether tasks of it are due at a moment of each entity's own."""
        return any(task.options.spread is not None for task in self.tasks.values())

    @cached_property
    def anchor_fields(self) -> frozenset[str]:
        """The entity's fields that tasks are anchored to."""
        whens = (task.when for task in self.tasks.values())
        return frozenset(when.field_name for when in whens if when and when.field_name)

    @cached_property
    def asks_of_holidays(self) -> bool:
        """Whether a function may be asked when a task is due, which may be the host's and ask the database."""
        windows = (task.options.window for task in self.tasks.values())
        return any(hours is not None and hours.is_holiday is not None for hours in windows)

    @cached_property
    def awaited_fields(self) -> frozenset[str]:
        """The entity's fields that lead to others for whose events tasks wait, by both names that Django has for them."""
        whens = (task.when for task in self.tasks.values())
        paths = (when.awaits_of for when in whens if when and isinstance(when.awaits_of, str))
        return frozenset(
            name for path in paths for first in [path.partition(".")[0]] for name in (first, f"{first}_id")
        )

    @cached_property
    def followed_fields(self) -> frozenset[str]:
        """The entity's fields that a change of means other times: anchors, and the one with its time zone."""
        return self.anchor_fields | {name for name in (self.cls.time_zone,) if name}
