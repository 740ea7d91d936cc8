"""Plans of machines: how the states and moves in a database differ from those of their tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count

from timeline.definition import Definition
from timeline.definition.machines import table_of
from timeline.models import Edge, TimelineRun
from timeline.store.gathering import gather

Pair = tuple[str, str]
_Counts = defaultdict[str, Counter[str]]  # Name of a machine → state → runs.


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinePlan:
    """
    How a machine's table and the database differ.

    Args:
        machine: Its name.
        states: State of the table → how many open runs are in it.
        stranded: State that the table does not have → how many open runs are in it: nothing can move these.
        backs: State that the table does not have → how many other open runs would go back to it.
        stateless: How many open runs began before it was a machine.
        old_edges: Moves that the database allows, and the table does not have.
        missing_edges: Moves of the table that the database does not know yet; the next process that starts with this code
            writes them.
    """

    machine: str
    states: Mapping[str, int]
    stranded: Mapping[str, int]
    backs: Mapping[str, int]
    stateless: int
    old_edges: list[Pair]
    missing_edges: list[Pair]

    @property
    def has_work(self) -> bool:
        """Whether there is something to do."""
        return bool(self.stranded or self.backs or self.old_edges)

    @property
    def lost(self) -> set[str]:
        """States that the table does not have and that runs still need."""
        return {*self.stranded, *self.backs}

    def as_data(self) -> dict[str, Any]:
        """Write it as plain data."""
        return {
            "machine": self.machine,
            "states": dict(self.states),
            "stranded": dict(self.stranded),
            "backs": dict(self.backs),
            "stateless": self.stateless,
            "old_edges": [list(pair) for pair in self.old_edges],
            "missing_edges": [list(pair) for pair in self.missing_edges],
        }


def machine_plans(definitions: Iterable[Definition], *, using: str) -> list[MachinePlan]:
    """
    Compare machines with the states and moves in a database: one statement for any number of machines, which reads the open
    runs once.

    Args:
        definitions: Machines, in the order in which their plans are wanted.
        using: Database alias.
    """
    known = {definition.name: definition for definition in definitions}
    if not known:
        return []
    runs = TimelineRun.objects.using(using).open().filter(timeline__in=sorted(known))
    rows = Edge.objects.using(using).filter(timeline__in=sorted(known))
    in_states = runs.values_list("timeline", "state", "back").annotate(count=Count("pk"))
    counted, pairs = gather([in_states, rows.values_list("timeline", "from_state", "to_state")], using=using)
    counts, backs = _counted(counted)
    edges: dict[str, set[Pair]] = defaultdict(set)
    for name, source, target in pairs:
        edges[name].add((source, target))
    return [_plan_of(definition, counts[name], backs[name], edges[name]) for name, definition in known.items()]


def _counted(counted: Iterable[tuple[str, str, str, int]]) -> tuple[_Counts, _Counts]:
    """How many open runs are in each state, and how many would go back to each."""
    states: _Counts = defaultdict(Counter)
    backs: _Counts = defaultdict(Counter)
    for name, state, back, count in counted:
        states[name][state] += count
        backs[name][back] += count
    return states, backs


def _plan_of(
    definition: Definition, counts: Mapping[str, int], backs: Mapping[str, int], edges: set[Pair]
) -> MachinePlan:
    table = table_of(definition)
    return MachinePlan(
        machine=definition.name,
        states={state: counts.get(state, 0) for state in table.states},
        stranded={state: counts[state] for state in sorted(counts) if state and state not in table.states},
        backs={state: backs[state] for state in sorted(backs) if state and state not in table.states},
        stateless=counts.get("", 0),
        old_edges=sorted(edges - table.edges),
        missing_edges=sorted(table.edges - edges),
    )
