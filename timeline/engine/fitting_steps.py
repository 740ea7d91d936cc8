"""Tell whether the recorded steps of a task fit the code that is to go on with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from timeline import reasons
from timeline.definition.fingerprints import digest_of
from timeline.exceptions import Rest
from timeline.lifecycle import Reason
from timeline.models import StepKind, StepRecord

if TYPE_CHECKING:
    from timeline.definition import Step
    from timeline.engine.attempting import Attempt


def misfit(attempt: Attempt) -> Reason | None:
    """
    Tell why a task with steps that are done, or begun, must not go on; None: it may go on.

    Args:
        attempt: With its records, before its handler is entered.
    """
    records = attempt.records
    for record in records.values():
        if record.kind == StepKind.BEGUN:
            return reasons.STEP_IN_DOUBT(step=record.name)
    if attempt.definition.shadow:
        return reasons.STEPS_IN_SHADOW()
    counted = [record for record in records.values() if record.code]
    if erased := [record for record in counted if not record.digest]:
        return reasons.STEP_ERASED(step=erased[0].name)
    known = frozenset().union(*(step.names for step in attempt.definition.steps.values()))
    unknown = [record for record in counted if record.name.partition("#")[0] not in known]
    options = attempt.declared.options
    if counted and (len(unknown) == len(counted) or options.atomic or options.bulk is not None):
        return reasons.STEPS_GONE()
    if unknown and attempt.declared.is_async and options.drift == "rest":
        return reasons.STEP_GONE(done=unknown[0].name)
    return None


class Recorded:
    """
    The records of earlier attempts, as this attempt reaches them one by one.

    Args:
        attempt: With its records.
    """

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        # A record that was made before 0071 has the longer one.
        self._same = {"", attempt.definition.code, attempt.definition.kept_code}
        self._passed: set[str] = set()

    def find(self, step: Step[Any, ..., Any], key: str, given: dict[str, Any]) -> StepRecord | None:
        """
        The record of a step; None: there is none, and the step is to be done.

        Args:
            step: The step as declared.
            key: The key of the call.
            given: The arguments of the call, by name.

        Raises:
            Rest: if the code has changed, and does not fit the steps that are done.
        """
        records = self._attempt.records
        if not records:
            return None
        name = named(step.name, key)
        record = records.get(name) or (records.get(named(step.options.was, key)) if step.options.was else None)
        if record is None:
            if not step.is_async:
                self._see_order(name)
            return None
        self._passed.add(record.name)
        is_loop = record.kind == StepKind.LOOP
        if (is_loop or self._is_of_other_code(record)) and record.digest != digest_of(given):
            changed = reasons.STEP_CHANGED(step=record.name)
            if is_loop:  # A place in one table means nothing in another.
                raise Rest(changed)
            self._rest(changed)
        return record

    def _see_order(self, comes_to: str) -> None:
        for record in self._attempt.records.values():
            if record.name not in self._passed and self._is_of_other_code(record):
                self._rest(reasons.STEP_LEFT_OUT(step=comes_to, done=record.name))

    def _is_of_other_code(self, record: StepRecord) -> bool:
        return record.code not in self._same

    def _rest(self, reason: Reason) -> None:
        if self._attempt.declared.options.drift == "rest":
            raise Rest(reason)


def named(name: str, key: str) -> str:
    """The name of a step with the key of a call."""
    return f"{name}#{key}" if key else name
