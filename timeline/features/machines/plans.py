"""How the states and moves in a database differ from a machine's table, and how to change its runs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Count, Q
from django.utils.translation import gettext_lazy as _

from timeline.definition import Definition
from timeline.exceptions import InvalidInput
from timeline.features.machines.declaration import known_state, table_of
from timeline.features.machines.edges import remove_edges, see_pairs
from timeline.features.machines.store import NewState, move_runs
from timeline.lifecycle import Reason, ReasonCode, RunEnd
from timeline.models import Edge, TimelineRun
from timeline.models.machine_rows import RENAMED
from timeline.operations.leave import end_runs
from timeline.operations.reconcile import reconcile_locked
from timeline.operations.sets import BATCH, check_batch_size
from timeline.payloads import as_text, check_text
from timeline.store.locks import Locked, lock_runs
from timeline.store.multi_query import gather
from timeline.store.transactions import atomic
from timeline.store.transition import MAX_ACTOR, MAX_REASON

Pair = tuple[str, str]
_Counts = defaultdict[str, Counter[str]]  # Name of a machine → state → runs.


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinePlan:
    """
    How a machine's table and the database differ.

    Args:
        states: State of the table → how many open runs are in it.
        stranded: State that the table does not have → how many open runs are in it: nothing can move these.
        backs: State that the table does not have → how many other open runs would go back to it.
        stateless: How many open runs began before it was a machine.
        old_edges: Moves that the database allows, and the table does not have.
        missing_edges: Moves of the table that the next process that starts with this code writes.
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
    """Compare machines with the states and moves in a database, in one statement that reads the open runs once."""
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


@dataclass(frozen=True, kw_only=True)
class Change:
    """
    What happens to runs in states that a table lacks by now: old state → new name, or their runs end; made by ``plan_change``.
    """

    definition: Definition
    renamed: Mapping[str, str] = field(default_factory=dict)
    ended: frozenset[str] = frozenset()
    reason: str = ""
    actor: str = ""


def plan_change(
    definition: Definition,
    *,
    renamed: Mapping[str, str],
    ended: Sequence[str] = (),
    reason: str = "",
    actor: str = "",
) -> Change:
    """
    Check what can be checked before a run is read. Raises ``InvalidInput`` for ``rename``, ``end``, ``reason`` or ``actor``.
    """
    states = table_of(definition).states
    for option, olds in (("rename", renamed), ("end", ended)):
        for old in olds:
            if old in states:
                problem = _("%(state)s is a state of the table.")
                raise InvalidInput(option, problem, _("Let an event move its runs: emit_many(…)."), state=old)
    if twice := sorted(set(renamed) & set(ended)):
        raise InvalidInput("end", _("%(state)s is renamed as well."), _("Say one of both."), state=twice[0])
    check_text("reason", reason, MAX_REASON, least=1 if ended else 0)
    check_text("actor", actor, MAX_ACTOR)
    return Change(
        definition=definition,
        renamed={as_text(old): known_state(definition, "rename", new) for old, new in renamed.items()},
        ended=frozenset(map(as_text, ended)),
        reason=reason,
        actor=actor,
    )


def change_runs(change: Change, *, size: int = BATCH, clock: Callable[[str], datetime], using: str) -> Iterator[int]:
    """
    Rename the states of runs, also those to which a BACK leads, or end the runs: one transaction for each batch; gives its
    size. Changed runs are not found again, so this can be called again after a crash. A renamed run counts as moved: its entry
    says ``renamed``, its time in the state begins now, and its tasks are reconciled.
    """
    check_batch_size(size)
    olds = {*change.renamed, *change.ended}
    runs = TimelineRun.objects.using(using).open().filter(timeline=change.definition.name).order_by("pk")
    runs = runs.filter(Q(state__in=olds) | Q(back__in=change.renamed))
    some = list(runs.only("entity_label", "entity_id")[:size])
    while some:
        yield _change_some(change, some, clock(using), using)
        # Continue after the last key: no index finds states, so otherwise each batch would read all runs before it again.
        some = list(runs.filter(pk__gt=some[-1].pk).only("entity_label", "entity_id")[:size])


def _change_some(change: Change, some: Sequence[TimelineRun], now: datetime, using: str) -> int:
    with atomic(using=using):
        locked = lock_runs([run.pk for run in some], {run.entity_ref for run in some}, using=using, fresh=True)
        alive = [run for run in locked.runs if run.is_open]
        ending = [run for run in alive if run.state in change.ended]
        moving = [run for run in alive if {run.state, run.back} & change.renamed.keys() and run not in ending]
        _rename(change, moving, locked, now, using)
        reason = Reason(ReasonCode.EXIT, change.reason, change.actor)
        end_runs(ending, RunEnd.LEFT, reason=reason, now=now, using=using)
    return len(moving) + len(ending)


def _rename(change: Change, runs: list[TimelineRun], locked: Locked, now: datetime, using: str) -> None:
    if not runs:
        return
    name, new = change.definition.name, change.renamed
    # Old code may still move runs. So the edges of a rename stay until all edges are removed that the table lacks.
    see_pairs({name: frozenset(new.items())}, using=using)
    new_states = [
        NewState(run=run, target=new.get(run.state, run.state), back=new.get(run.back, run.back), cause_id=None)
        for run in runs
    ]
    moved = move_runs(new_states, event=RENAMED, actor=change.actor, now=now, using=using)
    ends = table_of(change.definition).ends
    for state in sorted({run.state for run in moved} & ends):
        over = [run for run in moved if run.state == state]
        end_runs(over, RunEnd.EXIT, reason=Reason(ReasonCode.EXIT, state, change.actor), now=now, using=using)
    reconcile_locked(moved, locked.entities, now=now, using=using, lenient=True)


def forget_moves(definition: Definition, *, using: str) -> list[tuple[str, str]]:
    """
    Remove the moves that the table lacks, so that the database refuses them; gives them as (from, to). Older code must have
    stopped.

    Raises:
        InvalidInput: naming ``machine``, if open runs are in a state that the table lacks; nothing is removed then.
    """
    table = table_of(definition)
    with atomic(using=using):
        removed = remove_edges(definition.name, but=table.edges, using=using)
        open_runs = TimelineRun.objects.using(using).open().filter(timeline=definition.name)
        if stray := open_runs.exclude(state__in=["", *table.states]).values_list("state", flat=True).first():
            problem = _("runs have come to %(state)s meanwhile.")
            remedy = _("Stop the processes of older code, and call it again.")
            raise InvalidInput("machine", problem, remedy, state=stray)
    return removed
