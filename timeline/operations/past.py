"""Late tasks: what happens to tasks that were due before their run began, because the entity is older than its timeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from django.db.models import Model
from django.utils.translation import gettext_lazy as _

from timeline import reasons
from timeline.definition import Definition, Task
from timeline.dialects import dialect_of
from timeline.exceptions import InvalidInput
from timeline.lifecycle import ReasonCode
from timeline.models import EntityRef
from timeline.models.entities import Entities
from timeline.operations._calling_off import call_off
from timeline.operations.reconciling import reconcile_locked
from timeline.store.beginning import Beginning


class Past(StrEnum):
    """What happens to a task that was due before its run began."""

    RUN = "run"  # It is due at once.
    SKIP = "skip"  # It is cancelled for good, as by an operator.
    EXPIRE = "expire"  # It is cancelled as too late; if its date changes, it is made again.


_CODES: Final = {Past.SKIP: ReasonCode.OPERATOR, Past.EXPIRE: ReasonCode.EXPIRED}


def check_past(past: str) -> Past:
    """
    Check the value that the caller gave.

    Raises:
        InvalidInput: naming ``past``.
    """
    if past not in list(Past):
        remedy = _("Give one of %(known)s.")
        raise InvalidInput("past", _("%(value)r does not do."), remedy, value=past, known=", ".join(Past))
    return Past(past)


def is_past(definition: Definition, columns: Mapping[str, Any], now: datetime) -> bool:
    """
    Whether a row that is planned for a new run would have been due before now, if the run had been there in time. A row that is
    due when its window opens is not past before that, even if its nominal time has passed. A row that waits for an event is
    never past. A timer is not either: it moves its machine however late it is, as otherwise the machine would stay there for
    ever.
    """
    if columns["nominal_at"] >= now or columns.get("awaits"):
        return False
    declared = definition.tasks[columns["task_key"].partition(".")[2]]
    return (columns["planned_at"] < now or _is_earlier(declared)) and not declared.is_timer


def _is_earlier(declared: Task[Any, ..., Any]) -> bool:
    """Whether it is due before its nominal time if that is outside its window: then it is past when its nominal time is."""
    hours = declared.options.window
    return hours is not None and hours.outside == "previous"


def call_off_past(
    definition: Definition,
    begun: Sequence[Beginning],
    entities: Mapping[EntityRef, Model | None],
    past: Past,
    *,
    actor: str,
    now: datetime,
    using: str,
) -> int:
    """
    Cancel the tasks that were due before the runs began, in one statement. Repeated tasks go on from there, and runs without
    other tasks end.

    Args:
        definition: The timeline of the runs.
        begun: Runs that were begun just now, in this transaction.
        entities: Their entities, locked; None: not read.
        past: What happens to the tasks; ``RUN``: nothing is done.
        actor: Who decided it.
        now: Story time, at which the runs were begun.
        using: Database alias.

    Returns:
        How many tasks were cancelled.
    """
    if past == Past.RUN:
        return 0
    late = {
        known.id: kinds
        for known in begun
        if (kinds := {columns["task_key"] for columns in known.planned if is_past(definition, columns, now)})
    }
    if not late:
        return 0
    dialect = dialect_of(using)
    passed = sorted(set().union(*late.values()))
    named = {
        "runs": dialect.list_of(key.hex for key in late),
        "kinds": dialect.list_of(passed),
        "earlier": dialect.list_of(kind for kind in passed if _is_earlier(definition.tasks[kind.partition(".")[2]])),
    }
    reason = replace(reasons.PASSED(), code=_CODES[past], actor=actor)
    cancelled = call_off("runs", named, before=now, reason=reason, now=now, using=using)
    aside = {definition.task_key(name) for name in definition.aside}
    # Repeated tasks go on, and a run without other tasks ends.
    concerned = [
        known
        for known in begun
        if known.id in late
        and (definition.repeated or {columns["task_key"] for columns in known.planned} <= late[known.id] | aside)
    ]
    if concerned:
        there = Entities({ref: entity for ref, entity in entities.items() if entity is not None})
        runs = [known.run(using=using) for known in concerned]
        reconcile_locked(runs, there, there=entities.keys(), now=now, using=using)
    return len(cancelled)
