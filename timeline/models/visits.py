"""Questions about runs of machines and their states: the rows of their tasks that count, their visits, their tries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from django.db.models import Count, F, Max, OuterRef, Subquery
from django.db.models.functions import Coalesce

from timeline.models.run import TimelineRun
from timeline.models.run_entry import RENAMED, RunEntry

if TYPE_CHECKING:
    from timeline.definition import Definition

Known = Sequence[tuple[TimelineRun, "Definition"]]


@dataclass(frozen=True, slots=True)
class RowsToPlan:
    """
    The rows from which runs are planned.

    The run of a machine may visit a state any number of times. Rows of earlier visits that have ended are not read, so that all
    moves cost the same.

    Args:
        whole: Ids of runs of which all rows are read.
        in_states: Ids of runs of which open rows are read; and of those that have ended, the rows of the following keys.
        others: Keys of tasks that are not bound to states.
        bound: Keys of tasks that are bound to states.
        visits: Which rows of bound tasks: the occurrences of the present visits.
    """

    whole: list[UUID]
    in_states: list[UUID]
    others: list[str]
    bound: list[str]
    visits: list[str]


def wanted_of(known: Known, *, moved: bool = False) -> RowsToPlan:
    """Which rows to read to plan some runs. After a run has ``moved``, no row of its present visit can have ended."""
    whole = [run.id for run, definition in known if not definition.in_states]
    others, bound, visits, in_states = set[str](), set[str](), set[str](), list[UUID]()
    for definition, runs in _by_definition(known):
        keys = {definition.task_key(name) for name in definition.in_states}
        others |= {definition.task_key(name) for name in definition.tasks} - keys
        in_states += [run.id for run in runs]
        if not moved:
            bound |= keys
            visits |= {str(run.moves) for run in runs}
    return RowsToPlan(whole, in_states, sorted(others), sorted(bound), sorted(visits))


def tries_of(known: Known, *, using: str) -> dict[UUID, int]:
    """
    Count the tries of runs in states where tasks come later with each try.

    This is the number of entries into that state since the last move from one working state to another; at least 1. One
    statement for each machine with such runs; none if there are none.
    """
    waiting = [(run, definition) for run, definition in known if run.state and run.state in definition.backing_off]
    tries: dict[UUID, int] = {}
    for definition, runs in _by_definition(waiting):
        working = sorted(definition.machine.working) if definition.machine else []
        entries = RunEntry.objects.using(using)
        moves = entries.filter(run=OuterRef("run"), from_state__in=working, to_state__in=working)
        progress = moves.exclude(from_state=F("to_state")).values("run").annotate(last=Max("seq")).values("last")
        since = entries.filter(run__in=[run.pk for run in runs], seq__gt=Coalesce(Subquery(progress), -1))
        since = since.exclude(event=RENAMED, from_state=F("to_state"))  # It changed only ``back``.
        counts = since.values("run", "to_state").annotate(number=Count("pk")).values_list("run", "to_state", "number")
        counted = {(run_id, state): number for run_id, state, number in counts}
        tries |= {run.pk: max(counted.get((run.pk, run.state), 0), 1) for run in runs}
    return tries


def _by_definition(known: Known) -> list[tuple[Definition, list[TimelineRun]]]:
    """Runs by their timelines, for timelines that have tasks bound to states."""
    found: dict[str, tuple[Definition, list[TimelineRun]]] = {}
    for run, definition in known:
        if definition.in_states:
            found.setdefault(definition.name, (definition, []))[1].append(run)
    return list(found.values())
