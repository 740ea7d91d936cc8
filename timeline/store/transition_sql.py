"""Compose the statement that makes changes: it has only the parts that the changes need. Rules: ``sql/columns.sql``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from itertools import product
from typing import Final, NamedTuple

from timeline.dialects import Dialect
from timeline.exceptions import TransitionNotAllowed
from timeline.lifecycle import FINAL, State, Trigger
from timeline.models.statements import narrowed
from timeline.store.changes import ChangeColumns, passed

# The values that a change may have, and their types in PostgreSQL.
VALUES: Final = {
    "id": "uuid",
    "from_state": "text",
    "via": "text",
    "to_state": "text",
    "from_attempt": "integer",
    "failures": "integer",
    "lost": "integer",
    "scheduled_at": "timestamptz",
    "nominal_at": "timestamptz",
    "planned_at": "timestamptz",
    "anchor": "text",
    "anchor_value": "timestamptz",
    "anchor_date": "date",
    "expires_at": "timestamptz",
    "definition_hash": "text",
    "claim_token": "uuid",
    "lease": "interval",
    "worker": "text",
    "result": "text",
    "error": "text",
    "fingerprint": "text",
    "awaits": "text",
    "awaits_key": "text",
    "awaits_label": "text",
    "awaits_id": "text",
    "awaits_other": "boolean",
    "slot": "integer",
    "detail": "text",
    "reason_code": "text",
    "reason": "text",
    "actor": "text",
}
NOTHING: Final[ChangeColumns] = dict.fromkeys(VALUES)  # The values that a change may leave out.

# The columns that a statement always returns.
ALWAYS: Final = (
    "id",
    "state",
    "seq",
    "attempt",
    "scheduled_at",
    "claim_token",
    "lease_expires_at",
    "reason_code",
    "reason",
    "actor",
    "finished_at",
)
_OF_FOUND: Final = ("id", "state", "seq", "attempt", "priority", "scheduled_at")  # For the order and the log.

# Where a statement reads a value. "one": from one change. "found": from one change, which is the same for all rows found.
# "many": from JSON with many changes; on SQLite this is "each".
_READ: Final = {
    "one": "%({name})s::{type}",
    "found": "%({name})s::{type}",
    "many": "change.{name}",
    "each": "json_extract(change.value, '$.{name}')",
}
LIMITED: Final = "limited"  # The selection that gives a place to each row that it finds.

_COLUMN: Final = re.compile(r"^    (\w+) = ", re.MULTILINE)
PARAMETER: Final = re.compile(r"%\((\w+)\)s")  # Where a statement reads a parameter. Functions have arguments there.
_VALUE: Final = re.compile(r"\bchange\.(\w+)")


class Composed(NamedTuple):
    """A statement and the columns that it returns. ``log``: a second statement, for the log entries on SQLite."""

    sql: str
    columns: tuple[str, ...]
    log: str = ""


def touched(changes: Iterable[ChangeColumns]) -> frozenset[str]:
    """What any of the changes touches: names of values, states in which they end, and ``ends`` if one of these is final."""
    states = {State(str(change["to_state"])) for change in changes}
    return frozenset().union(*changes, states, ["ends"] if states & FINAL else [])


@cache
def steps_by(trigger: Trigger) -> tuple[tuple[State, ...], ...]:
    """The states that a row passes in this move, for each state that has it: directly, or after becoming due."""
    steps = []
    for state, triggers in product(State, ((trigger,), (Trigger.DUE, trigger))):
        with suppress(TransitionNotAllowed):
            steps.append(passed(state, triggers))
    return tuple(steps)


@cache
def composed(
    dialect: Dialect,
    source: str,
    touches: frozenset[str],
    columns: tuple[str, ...] = (),
    *,
    selection: str = "",
    steps: tuple[tuple[State, ...], ...] = (),
    wait: bool = True,
) -> Composed:
    """
    Put the rules into the statement that makes changes.

    Args:
        source: Where the changes come from: ``one``, ``many`` or ``found``; on SQLite ``each``.
        touches: What they touch; see ``touched``.
        columns: The columns to return; empty: those that a transition always returns, and all that it sets.
        selection: Name of the statement that finds and locks the rows first; empty: the statement itself locks them.
        steps: For rows that are found: the states passed, for each state that has the move.
        wait: Whether to wait for locked rows, unless ``selection`` always skips them.
    """
    read = {name: _READ[source].format(name=name, type=kind) for name, kind in VALUES.items()}
    touches |= {source, "held", selection} if selection else {source}
    if vias := " ".join(f"WHEN '{states[0]}' THEN '{states[1]}'" for states in steps if len(states) > 2):
        touches |= {"via"}
    if steps:
        if selection == LIMITED:
            touches |= {"slot"}
            read |= {"slot": "change.slot"}
        read |= {"id": "change.id", "from_state": "change.from_state", "via": f"CASE change.from_state {vias} END"}
    rules = narrowed(dialect.sql("columns"), touches)
    columns = columns or tuple(dict.fromkeys((*ALWAYS, *_COLUMN.findall(rules))))
    returned = [f"task.{name}" for name in dict.fromkeys((*columns, *(_OF_FOUND if steps else ())))]
    parts = {
        "rules": rules,
        "entries": narrowed(dialect.sql("entries"), touches),
        "held": narrowed(dialect.sql(f"held_{selection}"), touches).rstrip() if selection else "",
        "skip": "" if wait else "SKIP LOCKED",
        "columns": ", ".join(columns),
        "returned": ", ".join(returned),
        "sources": ", ".join(f"'{states[0]}'" for states in steps),
    }
    verbs = ("transition",) if dialect.has_set_statements else ("transition", "log")
    sql, *log = (_filled(narrowed(dialect.sql(verb), touches), parts, read) for verb in verbs)
    return Composed(sql, columns, *log)


def _filled(text: str, parts: Mapping[str, str], read: Mapping[str, str]) -> str:
    """Put the parts into the text of a statement, and replace each value by the place where it is read."""
    for name, part in parts.items():
        text = text.replace(f"{{{name}}}", part)
    asked = ", ".join(f"{name} {VALUES[name]}" for name in dict.fromkeys(_VALUE.findall(text)))
    return _VALUE.sub(lambda value: read[value[1]], text.replace("{values}", asked))
