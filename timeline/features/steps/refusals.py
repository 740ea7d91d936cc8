"""Refuse steps that cannot be done where they are called, and tasks whose code does not fit their records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db import connections
from django.utils.translation import gettext_lazy as _

from timeline import reasons
from timeline.definition.context import step_under_way
from timeline.exceptions import InvalidInput, Rest
from timeline.features.steps.declaration import digest_of
from timeline.features.steps.sentences import (
    STEP_CHANGED,
    STEP_ERASED,
    STEP_GONE,
    STEP_LEFT_OUT,
    STEPS_GONE,
    STEPS_IN_SHADOW,
)
from timeline.lifecycle import Reason
from timeline.models import StepKind, StepRecord

if TYPE_CHECKING:
    from timeline.definition import Step, Task
    from timeline.engine.attempts import Attempt
    from timeline.features.steps.batches import Batches


NO_STEPS: Final = (StepKind.WAIT, StepKind.OVER)  # These have no method.
_NO_TRANSACTION: Final = (0, 4)  # psycopg's numbers for a connection that is idle, and for one that is lost.


def refuse_step(
    step: Step[Any, ..., Any], name: str, *, handler: Task[Any, ..., Any], elsewhere: bool, again: bool, using: str
) -> None:
    """Refuse a step that cannot be done here; ``elsewhere``: it is called in another thread; ``again``: called before."""
    if wrong := _wrong_handler(step, handler) or _wrong_place(step, elsewhere, again, using):
        raise InvalidInput("step", *wrong, step=name, method=step.name)


def refuse_rows(step: Step[Any, ..., Any], batches: Batches[Any], *, using: str) -> None:
    """Refuse rows for which a step cannot be done: ``InvalidInput``, naming ``rows``."""
    if step.options.atomic and batches.using != using:
        problem = _("is of the database %(using)s, which the transaction of %(step)s is not of.")
        raise InvalidInput(
            "rows", problem, _("Declare the step with atomic=False."), using=batches.using, step=step.name
        )
    if batches.are_locked and not step.options.atomic:
        problem = _("locks its rows, and %(step)s has no transaction.")
        raise InvalidInput("rows", problem, _("Take select_for_update() out, or lock in the step."), step=step.name)


def _wrong_handler(step: Step[Any, ..., Any], handler: Task[Any, ..., Any]) -> tuple[Any, Any] | None:
    """The problem and the remedy; None: there is none."""
    if handler.options.bulk is not None:
        return _("%(step)s is called for many entities at once."), _("Take steps in a handler without bulk.")
    if handler.options.atomic:
        problem = _("%(step)s is called in an atomic handler: with its transaction, the record could be undone.")
        return problem, _("Declare the task with atomic=False.")
    if handler.is_async is not step.is_async:
        problem = _("%(step)s and the handler are not both declared with async def.")
        return problem, _("Declare both with async def, or none.")
    return None


def _wrong_place(step: Step[Any, ..., Any], elsewhere: bool, again: bool, using: str) -> tuple[Any, Any] | None:
    """As ``_wrong_handler``."""
    if step_under_way.get() is not None:
        return _("%(step)s is called in another step."), _("Call it in the handler, after the other one.")
    if not step.is_async and elsewhere:
        return _("%(step)s is called in another thread."), _("Call it where the handler runs.")
    if not step.is_async and is_in_transaction(using):
        problem = _("%(step)s is called in a transaction: with that, the record could be undone after it happened.")
        return problem, _("Call it outside of atomic(); an atomic step has a transaction of its own.")
    if again:
        remedy = _("Tell the calls apart by a key: self.%(method)s.keyed(…).")
        return _("%(step)s is called twice in one attempt."), remedy
    return None


def is_in_transaction(using: str) -> bool:
    """Whether the host has begun a transaction; the transaction of a test case does not count."""
    connection: Any = connections[using]
    if blocks := connection.atomic_blocks:
        return not blocks[-1]._from_testcase
    if connection.connection is None:
        return False
    status = getattr(getattr(connection.connection, "pgconn", None), "transaction_status", 0)
    in_one = status not in _NO_TRANSACTION
    return not connection.autocommit or in_one or getattr(connection.connection, "in_transaction", False)


def misfit(attempt: Attempt) -> Reason | None:
    """Why a task with steps that are done, or begun, must not go on; None: it may. Called before its handler is entered."""
    records = attempt.records
    for record in records.values():
        if record.kind == StepKind.BEGUN:
            return reasons.STEP_IN_DOUBT(step=record.name)
    if attempt.definition.shadow:
        return STEPS_IN_SHADOW()
    counted = [record for record in records.values() if record.code]
    if erased := [record for record in counted if not record.digest]:
        return STEP_ERASED(step=erased[0].name)
    known = frozenset().union(*(step.names for step in attempt.definition.steps.values()))
    steps = [record for record in counted if record.kind not in NO_STEPS]
    unknown = [record for record in steps if record.name.partition("#")[0] not in known]
    options = attempt.declared.options
    if (steps and len(unknown) == len(steps)) or (counted and (options.atomic or options.bulk is not None)):
        return STEPS_GONE()
    if unknown and attempt.declared.is_async and options.drift == "rest":
        return STEP_GONE(done=unknown[0].name)
    return None


class RecordedSteps:
    """The records of earlier attempts, as this attempt reaches them one by one."""

    def __init__(self, attempt: Attempt) -> None:
        self._records = attempt.records
        self._drift = attempt.declared.options.drift
        self._same = {"", attempt.definition.kept_code}
        self._passed: set[str] = set()

    def find(self, step: Step[Any, ..., Any], key: str, given: dict[str, Any]) -> StepRecord | None:
        """The record of a call of a step; None: it is to be done. ``Rest`` if the code does not fit the steps that are done."""
        if not self._records:
            return None
        name = named(step.name, key)
        if name not in self._records and step.options.was and named(step.options.was, key) in self._records:
            name = named(step.options.was, key)
        return self.named(name, given, in_order=not step.is_async)

    def named(self, name: str, given: dict[str, Any], *, in_order: bool) -> StepRecord | None:
        """The same by the name of a record. ``in_order``: what other code has done before must be passed before."""
        record = self._records.get(name)
        if record is None:
            if in_order:
                self._see_order(name)
            return None
        self._passed.add(record.name)
        is_loop = record.kind == StepKind.LOOP
        if (is_loop or self._is_of_other_code(record)) and record.digest != digest_of(given):
            changed = STEP_CHANGED(step=record.name)
            if is_loop:  # A place in one table means nothing in another.
                raise Rest(changed)
            self._rest(changed)
        return record

    def _see_order(self, comes_to: str) -> None:
        for record in self._records.values():
            if record.name not in self._passed and self._is_of_other_code(record):
                self._rest(STEP_LEFT_OUT(step=comes_to, done=record.name))

    def _is_of_other_code(self, record: StepRecord) -> bool:
        return record.code not in self._same

    def _rest(self, reason: Reason) -> None:
        if self._drift == "rest":
            raise Rest(reason)


def named(name: str, key: str) -> str:
    """The name of a step with the key of a call."""
    return f"{name}#{key}" if key else name
