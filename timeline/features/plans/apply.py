"""Apply: let open runs follow a changed definition, in batches; rows of tasks that a person names are kept or cancelled."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from django.utils.translation import gettext_lazy as _

from timeline.definition import Definition
from timeline.exceptions import InvalidInput, UnknownTask
from timeline.features.plans.drift import drifted_among
from timeline.features.plans.drift_query import RunRef, in_doubt, is_told, pages_of_open_runs
from timeline.hooks import hooks
from timeline.lifecycle import Reason, ReasonCode, State, Trigger
from timeline.models import EntityRef, TimelineRun
from timeline.operations.reconcile import reconcile_locked
from timeline.operations.sets import BATCH, check_batch_size
from timeline.payloads import check_text
from timeline.planning import Cancel, Create, Keep, Move, Plan, PlannedChange, TaskRow, Times
from timeline.store.locks import lock_runs
from timeline.store.new_rows import expiry_at
from timeline.store.transactions import atomic
from timeline.store.transition import MAX_ACTOR, MAX_REASON, Write, apply

READ: Final = 2000  # How many runs are checked together.


class Applied(NamedTuple):
    """How many runs were checked, how many of them were reconciled, and how many rows were changed or made."""

    looked: int
    runs: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """
    What happens to the rows of a timeline whose definition has changed; made by ``check_choices``.

    ``keep``: open rows keep their times; if the task is new, none is made. ``cancel``: changed rows are cancelled and not made
    again. All other tasks follow the definition. The log has the reason, if one is given, and who gave it.
    """

    definition: Definition
    keep: frozenset[str]
    cancel: frozenset[str]
    reason: str
    actor: str

    @property
    def kept(self) -> Reason:
        """The log's reason for a row that keeps its time."""
        return Reason(ReasonCode.MOVED, self.reason, self.actor)

    def said(self, reason: Reason) -> Reason:
        """A reason of the planner's as it is logged: in the words of who wants it so, if they gave some, with their name."""
        return replace(reason, text=self.reason, actor=self.actor, said=None) if self.reason else reason

    @property
    def cancelled(self) -> Reason:
        """The log's reason for a row that is cancelled. Its code is that of an operator, so that the row is not made again."""
        return Reason(ReasonCode.OPERATOR, self.reason, self.actor)


def check_choices(
    definition: Definition,
    *,
    keep: Collection[str] = (),
    cancel: Collection[str] = (),
    reason: str = "",
    actor: str = "",
) -> Choices:
    """Check what can be checked before a run is read; raises ``UnknownTask``, or ``InvalidInput`` that names the argument."""
    for option, names in (("keep", keep), ("cancel", cancel)):
        for name in names:
            if name not in definition.tasks:
                raise UnknownTask(definition.task_key(name), known=sorted(map(definition.task_key, definition.tasks)))
            if name in {*definition.repeated, *definition.in_states, *definition.fanned_out}:
                problem = _("the rows of %(task)s are made one after another, as its run goes on.")
                raise InvalidInput(option, problem, _("Change the definition instead."), task=name)
    if twice := sorted(set(keep) & set(cancel)):
        raise InvalidInput("cancel", _("%(task)s is to be kept as well."), _("Say one of both."), task=twice[0])
    check_text("reason", reason, MAX_REASON, least=1 if keep or cancel else 0)
    check_text("actor", actor, MAX_ACTOR)
    return Choices(definition=definition, keep=frozenset(keep), cancel=frozenset(cancel), reason=reason, actor=actor)


def apply_choices(
    choices: Choices, *, size: int = BATCH, clock: Callable[[str], datetime], using: str
) -> Iterator[Applied]:
    """
    Reconcile all open runs that differ from their definition, ``size`` in a transaction; say what each batch did.

    After a crash it can be called again: what was reconciled differs no more. A run with a task that is being run is left
    out, since the outcome of the task reconciles it. ``clock`` is read once for each batch.
    """
    check_batch_size(size)
    for some in pages_of_open_runs([choices.definition.name], size=READ, using=using):
        looked = len(some)
        for part in _parts(choices.definition, some, size, clock, using):
            yield Applied(looked, *_apply_to(choices, part, clock(using), using))
            looked = 0
        if looked:
            yield Applied(looked, 0, 0)


def _parts(
    definition: Definition, some: Sequence[RunRef], size: int, clock: Callable[[str], datetime], using: str
) -> Iterator[Sequence[RunRef]]:
    """
    Give runs that differ, in batches. Where the database can rule out others, give all in doubt: few do not differ, and they
    are planned only once, after they are locked.
    """
    now, named = clock(using), {ref.id: ref for ref in some}
    if is_told(definition, now=now):
        found: Iterable[Sequence[UUID]] = [sorted(in_doubt(some, now=now, using=using))]
    else:
        found = ([run.pk for run in runs] for runs in drifted_among(some, now=now, using=using, cancels_undefined=True))
    for keys in found:
        for begin in range(0, len(keys), size):
            yield [named[key] for key in keys[begin : begin + size]]


def _apply_to(choices: Choices, refs: Sequence[RunRef], now: datetime, using: str) -> tuple[int, int]:
    chosen = _Chosen(choices)
    with atomic(using=using):
        entities = {EntityRef(ref.label, ref.entity_id) for ref in refs}
        locked = lock_runs([ref.id for ref in refs], entities, using=using, fresh=True)
        standing = [run for run in locked.runs if run.is_open]
        created = reconcile_locked(
            standing,
            locked.entities,
            now=now,
            using=using,
            lenient=True,
            choose=chosen.choose,
            cancels_undefined=True,
        )
        unwanted = [task for task in created if task.task_name in chosen.unmade.get(task.run_id, ())]
        apply(
            [Write(task=task, triggers=(Trigger.CANCEL,), reason=choices.cancelled) for task in unwanted],
            now=now,
            using=using,
        )
        if concerned := {task.run_id for task in unwanted} | chosen.called_off:
            again = [run for run in standing if run.pk in concerned]
            reconcile_locked(again, locked.entities, now=now, using=using, lenient=True, cancels_undefined=True)
        for tell in hooks().reconciled:
            tell(standing, using=using)
    return len(chosen.changed | {run.pk for run in standing if not run.is_open}), chosen.rows


class _Chosen:
    def __init__(self, choices: Choices) -> None:
        self._choices = choices
        self.rows = 0
        self.changed: set[UUID] = set()  # Runs with a row that was changed or made.
        self.called_off: set[UUID | None] = set()  # Runs with a cancelled row: rows that follow it are not made.
        self.unmade: dict[UUID | None, set[str]] = {}  # Run → tasks for which no row is wanted.

    def choose(self, run: TimelineRun, planned: Plan) -> Plan:
        """Give the plan to carry out."""
        if any(not isinstance(change, Create) and change.row.state == State.ACTIVE for change in planned.changes):
            return Plan(foreseen=planned.foreseen, open=True)  # The outcome of the task reconciles the run.
        standing = {change.row.id: change.row for change in planned.changes if isinstance(change, Cancel)}
        changes = [self._change(run, change, standing) for change in planned.changes]
        if rows := sum(not isinstance(change, Keep) for change in changes):
            self.rows += rows
            self.changed.add(run.pk)
        return Plan(changes=changes, foreseen=planned.foreseen, open=planned.open)

    def _change(self, run: TimelineRun, change: PlannedChange, standing: dict[UUID, TaskRow]) -> PlannedChange:
        choices = self._choices
        match change:
            case Cancel(row=row, reason=reason) if row.task_name not in choices.definition.tasks:
                return Cancel(row=row, reason=replace(choices.said(reason), actor=choices.actor))
            case Move(row=row) if row.task_name in choices.cancel:
                self.called_off.add(run.pk)
                return Cancel(row=row, reason=choices.cancelled)
            case Move(row=row) if row.task_name in choices.keep:
                return replace(change, times=self._stay(change.times, row), reason=choices.kept)
            case Create(task_name=name, previous=previous) if name in choices.keep and previous in standing:
                return replace(change, times=self._stay(change.times, standing[previous]), why=choices.reason)
            case Create(task_name=name) if name in choices.keep | choices.cancel:
                self.unmade.setdefault(run.pk, set()).add(name)
            case Move() | Cancel():
                return replace(change, reason=choices.said(change.reason))
        return change

    def _stay(self, times: Times, row: TaskRow) -> Times:
        """The times of the new definition, with the due time of the row: as if a person had moved it back."""
        expires = expiry_at(self._choices.definition.task_key(row.task_name), row.scheduled_at)
        return replace(times, scheduled_at=row.scheduled_at, expires_at=expires)
