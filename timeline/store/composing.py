"""Compose the statement that makes changes: of what they touch, and of nothing more."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Final, NamedTuple

from django.db import connections

from timeline.conf import get_settings
from timeline.lifecycle import LEASED, State
from timeline.models.statements import narrowed, statement
from timeline.store.changes import Change, Write, as_changes, seconds, stored_by

# What the statement returns: always, and where a change touches what stands beside it.
ALWAYS: Final = (
    "id",
    "state",
    "seq",
    "scheduled_at",
    "claim_token",
    "lease_expires_at",
    "reason_code",
    "reason",
    "actor",
    "finished_at",
)
_SOMETIMES: Final = {
    "attempt": "active",
    "started_at": "active",
    "sent_at": "leased",
    "worker": "worker",
    "failures": "failures",
    "lost": "lost",
    "result": "result",
    "error": "error",
    "nominal_at": "nominal_at",
    "anchor": "nominal_at",
    "anchor_value": "nominal_at",
    "anchor_date": "nominal_at",
    "expires_at": "nominal_at",
    "definition_hash": "definition_hash",
}
_VALUES: Final = (
    "via",
    "scheduled_at",
    "claim_token",
    "lease",
    "reason_code",
    "reason",
    "actor",
    "detail",
    *_SOMETIMES,
)
_NOTHING: Final[dict[str, Any]] = dict.fromkeys(_VALUES)  # What a change may leave out.


class Statement(NamedTuple):
    """
    What to execute.

    Args:
        sql: One statement.
        parameters: Its own.
        columns: What it returns of each row; empty: as its cursor says.
    """

    sql: str
    parameters: dict[str, Any]
    columns: tuple[str, ...]


def as_statement(writes: Sequence[Write], *, now: datetime, using: str, wait: bool = True) -> Statement:
    """
    Write the changes as one statement, which returns the rows changed.

    Args:
        writes: At least one.
        now: Story time.
        using: Database alias.
        wait: For rows that somebody else has locked; False: pass them over.

    Raises:
        TransitionNotAllowed: if the lifecycle has no such move.
    """
    changes = as_changes(writes, using=using)
    parameters = {"at": stored_by(using)("finished_at", now), "usual_lease": seconds(get_settings().LEASE)}
    if connections[using].vendor != "postgresql":
        return Statement(statement("transition", "sqlite"), parameters | {"changes": _as_json(changes)}, ())
    alone = len(changes) == 1
    sql, columns = _composed(_touched(changes) | _locked(alone, wait), alone)
    given = _NOTHING | changes[0] if alone else {"changes": _as_json(changes)}
    return Statement(sql, {**parameters, "ids": [write.task.id for write in writes], **given}, columns)


def _touched(changes: Iterable[Change]) -> frozenset[str]:
    """Name what the changes touch, all together: values, and ``leased`` and ``active`` where one ends so."""
    states = {change["to_state"] for change in changes}
    also = {name for name, among in (("leased", LEASED), ("active", {State.ACTIVE})) if states & among}
    return frozenset().union(*changes, also)


def _locked(alone: bool, wait: bool) -> frozenset[str]:
    """Name how rows are locked: several in the lock order; a single one by the write itself, unless it is to be passed over."""
    return frozenset({"held"} if not (alone and wait) else ()) | frozenset(() if wait else {"pass_over"})


@cache
def _composed(touched: frozenset[str], alone: bool) -> tuple[str, tuple[str, ...]]:
    """Compose PostgreSQL's statement for changes that touch no more than this; give the columns it returns, too."""
    changes = statement("changes_one" if alone else "changes_many", "postgresql").rstrip()
    columns = (*ALWAYS, *(name for name, cause in _SOMETIMES.items() if cause in touched))
    sql = narrowed(statement("transition", "postgresql").replace("{changes}", changes), touched)
    sql = sql.replace("{task_columns}", ", ".join(f"task.{name}" for name in columns))
    return sql.replace("{columns}", ", ".join(columns)), columns


def _as_json(changes: Sequence[Change]) -> str:
    return json.dumps(changes, ensure_ascii=False)
