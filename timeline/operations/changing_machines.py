"""Change machines while their runs are open: rename states of runs, end runs, and forget old moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from timeline.definition import Definition
from timeline.definition.machines import known_state, table_of
from timeline.exceptions import InvalidInput
from timeline.lifecycle import Reason, ReasonCode, RunEnd
from timeline.models import TimelineRun
from timeline.models.run_entry import RENAMED
from timeline.operations.leaving import end_runs
from timeline.operations.reconciling import reconcile_locked
from timeline.operations.sets import BATCH, check_batch_size
from timeline.payloads import as_text, check_text
from timeline.store.edges import remove_edges, see_pairs
from timeline.store.isolating import atomic
from timeline.store.locking import Locked, lock_runs
from timeline.store.machines import MAX_ACTOR, Step, move_runs
from timeline.store.writing import MAX_REASON


@dataclass(frozen=True, kw_only=True)
class Change:
    """
    What happens to runs in states that the table of a machine does not have any more; made by ``plan_change``.

    Args:
        definition: The machine.
        renamed: Old state → its new name, a state of the table.
        ended: Old states whose runs end.
        reason: Why runs are ended.
        actor: The person who decided it.
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
    Check everything that can be checked before a run is read. Arguments as for ``Change``.

    Raises:
        InvalidInput: naming ``rename``, ``end``, ``reason`` or ``actor``.
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
    Rename the states of runs, also those to which a BACK would lead, or end the runs: one transaction for each batch.

    Runs that were changed are not found again, so this can be called again after a crash. A renamed run counts as moved: its
    entry says ``renamed``, its time in the state begins now, and its tasks are reconciled.

    Args:
        change: A change that ``plan_change`` made.
        size: How many runs a batch has.
        clock: Gives the story time of a database; it is read once for each batch.
        using: Database alias.

    Returns:
        After each batch, how many runs it had.
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
    steps = [
        Step(run=run, target=new.get(run.state, run.state), back=new.get(run.back, run.back), cause_id=None)
        for run in runs
    ]
    moved = move_runs(steps, event=RENAMED, actor=change.actor, now=now, using=using)
    ends = table_of(change.definition).ends
    for state in sorted({run.state for run in moved} & ends):
        over = [run for run in moved if run.state == state]
        end_runs(over, RunEnd.EXIT, reason=Reason(ReasonCode.EXIT, state, change.actor), now=now, using=using)
    reconcile_locked(moved, locked.entities, now=now, using=using, lenient=True)


def forget_moves(definition: Definition, *, using: str) -> list[tuple[str, str]]:
    """
    Remove the moves that the table lacks, so that the database refuses them. Processes of older code must have stopped.

    Returns:
        The moves, as pairs of states: from, to.

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
