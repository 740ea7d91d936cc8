"""``Definition``: what is known of a timeline once it is declared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from timeline.definition.asks import Ask
from timeline.definition.fingerprints import code_of, kept
from timeline.definition.handlers import Task
from timeline.definition.keys import key_from
from timeline.definition.recurring import Recurring
from timeline.definition.starts import AfterRun, Created
from timeline.definition.steps import Step
from timeline.definition.tables import BACK, IGNORE, Table, Target
from timeline.definition.timers import Timers

if TYPE_CHECKING:
    from timeline.definition.timelines import Timeline
    from timeline.timing import When


@dataclass(frozen=True, kw_only=True)
class Definition:
    """
    A timeline as declared.

    Args:
        cls: The class.
        name: First half of its task keys.
        label: The entity's model, ``accounts.user``; empty for a system timeline.
        starts_on: Names of events, and perhaps ``created()``, ``after_run(…)`` or ``daily(…)`` and its kin.
        exits: Name of event → name of the exit, kept as the reason.
        tasks: Name of method → task, in the order declared.
        steps: Name of method → step, in the order declared.
        shadow: Whether its handlers are not entered.
        once: Whether an entity has one run ever for each key.
        key: Fields of the payload of the event that starts a run, which make its key; none: runs have no key.
        again: Whether what comes while a run is open begins one more when that has finished.
        search: Fields of the entity by which people find it; none: those of its own admin.
        machine: Its table; None: its runs have no states.
        payloads: Event → the type of its payload, where a machine declares one.
        timers: What moves a machine by itself, and where nothing does.
        errors: Class of what a handler of a machine raises → the event that it means.
        asks: Event → who may say it.
        most_moves: So many moves of a run of a machine within an hour are made by handlers and timers.
        spinning: The event that comes instead of more; empty: none.
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
    machine: Table | None = None
    payloads: Mapping[str, type] = field(default_factory=dict)
    timers: Timers = field(default_factory=Timers)
    errors: Mapping[type[Exception], str] = field(default_factory=dict)
    asks: Mapping[str, Ask] = field(default_factory=dict)
    most_moves: int = 0
    spinning: str = ""
    tells: frozenset[str] = frozenset()

    def run_key(self, payload: Mapping[str, Any]) -> str:
        """
        Make the key of a run from the payload of the event that starts it: ``42:3``.

        Raises:
            InvalidInput: if a field is missing, or holds neither text nor a whole number, or the key is too long.
        """
        return key_from(payload, self.key, timeline=self.name) if self.key else ""

    def task_key(self, task_name: str) -> str:
        """The key under which rows of the task are stored."""
        return f"{self.name}.{task_name}"

    @cached_property
    def mirror(self) -> str:
        """Name of the entity's field in which a machine shows its state; empty: in none."""
        return str(getattr(self.cls, "mirror", "")) if self.machine is not None else ""

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
        taken = {state: table.takes(state) for state in table.states}
        found = {
            state: tuple(sorted(event for event in self.asks if takes.get(event, IGNORE) is not IGNORE))
            for state, takes in taken.items()
        }
        return {state: events for state, events in found.items() if events}

    @cached_property
    def waiting_in(self) -> frozenset[str]:
        """
        States of a machine that wait for people: whose own rows have an event that it asks for. One that all open states take,
        such as calling it off, makes none of them wait.
        """
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
        loose = {event for state, event, to in self._answers if to is IGNORE or self._is_loose(state, to)}
        return self.machine.events - loose

    @cached_property
    def loose_events(self) -> frozenset[str]:
        """Events of a machine by which no move leaves a state that tasks are bound to, nor comes to one."""
        if self.machine is None:
            return frozenset()
        bound = {
            event
            for state, event, to in self._answers
            if not self._is_loose(state, to) or (to is BACK and self.bound_states)
        }
        return self.machine.events - bound

    @property
    def _answers(self) -> list[tuple[str, str, Target]]:
        """State and event of a machine, and where that leads."""
        if self.machine is None:
            return []
        return [(state, event, to) for state in self.machine.states for event, to in self.machine.takes(state).items()]

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
