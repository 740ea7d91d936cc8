"""Whether a row is still what its timeline plans, at the moment of running: its anchor, its definition, its machine's state."""

from __future__ import annotations

from datetime import datetime

from django.utils import translation

from timeline import reasons
from timeline.engine.attempting import Attempt
from timeline.exceptions import DateOutOfRange, NaiveDatetime, Rest
from timeline.lifecycle import Reason
from timeline.models.facts import anchors_of, is_of_visit, zone_of
from timeline.planning.rows import is_due_by_decision
from timeline.planning.visits import is_of_unknown_state, left
from timeline.timing import When


def superseded(attempt: Attempt, now: datetime) -> Reason | Rest | None:
    """Refuse a row whose anchor now gives another time; if a changed schedule gives a later one, it is not yet time."""
    task, when = attempt.task, attempt.declared.when
    if task.run_id is None:
        return None
    run = task.run
    if when is not None and when.during and (run is None or not is_of_visit(task, run, when)):
        return _not_of_visit(attempt, when)
    if when is None or (when.anchor_in(run.state) if run else when.anchor) != task.anchor:
        return reasons.PLANNED_OTHERWISE()
    try:
        value = _anchor_value(attempt, when.field_name)
        if value is None or value != task.anchor_value:
            return reasons.ANCHOR_CHANGED(anchor=when.field_name or when.anchor)
        is_other = task.definition_hash != attempt.declared.fingerprint
        if is_other and not is_due_by_decision(task.nominal_at, task.scheduled_at, task.planned_at):
            at = when.resolve(value, zone_of(attempt.definition, attempt.entity))
            # The nominal time is unchanged: if it is due before that, its window or a person has moved it.
            return reasons.NOT_YET() if at > now and at != task.nominal_at else None
    except NaiveDatetime as error:
        return reasons.WITHOUT_ZONE(anchor=error.field)
    except DateOutOfRange as error:
        with translation.override("en"):
            return reasons.OUT_OF_RANGE(anchor=error.field, value=error.value)
    return None


def _not_of_visit(attempt: Attempt, when: When) -> Reason | Rest:
    """
    Its run has left its states; or is in one that this code does not have, while a process that does knows what to do. Else a
    deploy that renames a state would call off timers of runs that are there.
    """
    run, machine = attempt.task.run, attempt.definition.machine
    if run is not None and is_of_unknown_state(attempt.task.occurrence, str(run.moves), run.state, machine):
        return Rest(reasons.STATE_UNKNOWN(state=run.state))
    return left(attempt.task.anchor, when)


def _anchor_value(attempt: Attempt, field_name: str) -> datetime | None:
    if not field_name:
        return attempt.task.anchor_value
    return anchors_of(attempt.definition, attempt.entity)[field_name]
