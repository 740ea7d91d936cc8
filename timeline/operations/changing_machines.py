"""Change machines while their runs are open: let runs follow a state that has another name, or end; forget old moves."""

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
    What becomes of runs that are in states which a machine's table lacks; made by ``plan_change``.

    Args:
        definition: The machine.
        renamed: Old state → the state of the table that it is called now.
        ended: Old states whose runs end.
        reason: Why, for those that end.
        actor: Who decided it.
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
    See what can be seen before any run is read. Arguments as for ``Change``.

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
    Rename the states of runs, also where they would go back to, or end them: a transaction a batch.

    What was done is not found again, so that it can be called again after a crash. A renamed run has moved: its entry says
    ``renamed``, its state counts from now, and its tasks are reconciled.

    Args:
        change: What ``plan_change`` has passed.
        size: Runs a batch.
        clock: Tells the story time of a database; read once a batch.
        using: Database alias.

    Returns:
        After each batch, how many runs it was.
    """
    check_batch_size(size)
    olds = {*change.renamed, *change.ended}
    runs = TimelineRun.objects.using(using).open().filter(timeline=change.definition.name).order_by("pk")
    runs = runs.filter(Q(state__in=olds) | Q(back__in=change.renamed))
    some = list(runs.only("entity_label", "entity_id")[:size])
    while some:
        yield _change_some(change, some, clock(using), using)
        # By their keys: no index finds states, so that each batch would look through all runs before it again.
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
    # Old code may still move runs meanwhile: the edges of a rename stay until all are taken away that the table lacks.
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
    Take away the moves that the table lacks, so that the database refuses them. Processes of older code are gone by then.

    Returns:
        From where to where.

    Raises:
        InvalidInput: naming ``machine``, if open runs are in a state that the table lacks; nothing is taken away then.
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
