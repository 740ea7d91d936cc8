"""
Statements whose plans PostgreSQL keeps: functions in the database, which ``migrate`` installs. To plan the text that starts
one task takes longer than all the rest. Prepared statements would be as fast, but many poolers do not allow them.

Processes of other versions call these functions, too. So one whose arguments change, or that returns a column less, gets
another name. A column more needs nothing: who calls names the columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from django.db import connections

from timeline.dialects import Dialect, dialect_of, narrowed
from timeline.lifecycle import FINAL, LEASED, State, Trigger
from timeline.models.task import ScheduledTask
from timeline.store.changes import ALWAYS, PARAMETER, VALUES, Composed, composed, paths_by
from timeline.store.returned_rows import FIELDS
from timeline.store.transactions import IN_ORDER

TABLE: Final = ScheduledTask._meta.db_table
_SEARCHES: Final = {"enable_seqscan": "off", "jit": "off"}
_REASON: Final = ("reason_code", "reason", "actor", "detail")


@dataclass(frozen=True, kw_only=True, eq=False)
class Kept:
    """
    One statement that is a function ``timeline_<name>``. ``arguments``: its parameters in order → their types. ``constants``:
    parameters with a fixed value. ``returns``: what it returns, if not ``columns`` of the task. Whole rows would be slower:
    PostgreSQL would read long values that nobody needs.
    """

    name: str
    arguments: Mapping[str, str]
    columns: tuple[str, ...] = ()
    returns: str = ""
    settings: Mapping[str, str] = field(default_factory=lambda: _SEARCHES)
    text: Callable[[Dialect], str]
    constants: Mapping[str, str] = field(default_factory=dict)

    @property
    def function(self) -> str:
        """The whole name of the function."""
        return f"timeline_{self.name}"

    @property
    def drop(self) -> str:
        """The statement that drops the function."""
        return f"DROP FUNCTION IF EXISTS {self.function}({', '.join(self.arguments.values())})"

    def call(self, columns: str) -> str:
        """The statement that calls the function; its parameters are those of the statement that was kept."""
        given = ", ".join(f"%({name})s::{kind}" for name, kind in self.arguments.items())
        return f"SELECT {columns} FROM {self.function}({given})"  # noqa: S608 (our own names; values are parameters)

    def function_text(self, using: str) -> str:
        """The statement that installs the function."""
        dialect = dialect_of(using)
        parts = {
            "name": self.name,
            "arguments": ", ".join(f"its_{name} {kind}" for name, kind in self.arguments.items()),
            "returns": self.returns or self._table(using),
            "settings": " ".join(f"SET {name} = {value}" for name, value in self.settings.items()),
            "statement": self.statement(dialect),
        }
        text = dialect.sql("function_kept")
        for name, part in parts.items():
            text = text.replace(f"{{{name}}}", part)
        return text

    def statement(self, dialect: Dialect) -> str:
        """The statement inside the function, which reads the arguments of the function."""
        return PARAMETER.sub(self._argument, self.text(dialect))

    def _table(self, using: str) -> str:
        types = (FIELDS[name].db_type(connections[using]) for name in self.columns)
        return f"TABLE ({', '.join(f'{name} {kind}' for name, kind in zip(self.columns, types, strict=True))})"

    def _argument(self, parameter: re.Match[str]) -> str:
        name = parameter[1]
        return f"'{self.constants[name]}'" if name in self.constants else f"its_{name}"


def _moving(
    name: str,
    selection: str,
    trigger: Trigger,
    asked: Mapping[str, str],
    given: tuple[str, ...] = (),
    *,
    wait: bool = False,
    columns: tuple[str, ...] = tuple(FIELDS),
    settings: Mapping[str, str] = _SEARCHES,
) -> Kept:
    """
    A statement of ``advance``. ``asked``: parameters of the selection and their types. ``given``: values that the move sets.
    """
    paths = paths_by(trigger)
    end = paths[0][-1]
    values = {*given, *(("lease",) if end in LEASED else ())}
    touches = frozenset({"to_state", end, *values, *(("ends", "slot") if end in FINAL else ())})
    read = (*values, *(("claim_token",) if end in LEASED else ()), *(("slot",) if end in FINAL else ()))
    arguments = dict(asked) | {value: VALUES[value] for value in sorted(read)} | {"at": "timestamptz"}
    return Kept(
        name=name,
        arguments=arguments,
        columns=columns,
        settings=settings,
        text=lambda dialect: (
            composed(dialect, "found", touches, columns, selection=selection, paths=paths, wait=wait).sql
        ),
        constants={"to_state": end.value},
    )


KEYS: Final = ("id", "task_key", "queue")
_STARTED: Final = ("worker",)
_FIRST: Final = {**IN_ORDER, "enable_seqscan": "off"}

# What ``advance`` does: selection, move, and whether it waits for rows that are locked.
MOVES: Final[Mapping[tuple[str, Trigger, bool], Kept]] = {
    ("due", Trigger.DUE, False): _moving(
        "stage_from",
        "due",
        Trigger.DUE,
        {"most": "integer", "since": "timestamptz", "since_id": "uuid"},
        columns=KEYS,
        settings=_FIRST,
    ),
    ("shares", Trigger.CLAIM, False): _moving(
        "claim_from",
        "shares",
        Trigger.CLAIM,
        {
            "task_keys": "text[]",
            "priorities": "integer[]",
            "sizes": "integer[]",
            "since": "timestamptz[]",
            "since_ids": "uuid[]",
        },
        columns=KEYS,
        settings=_FIRST,
    ),
    ("group", Trigger.START, False): _moving(
        "start_from",
        "group",
        Trigger.START,
        {
            "task_key": "text",
            "priority": "integer",
            "most": "integer",
            "since": "timestamptz",
            "since_id": "uuid",
            "retried": "boolean",
        },
        _STARTED,
        settings=_FIRST,
    ),
    **{
        ("given", Trigger.START, wait): _moving(
            name,
            "given",
            Trigger.START,
            {"ids": "uuid[]", "task_keys": "text[]", "attempts": "integer"},
            _STARTED,
            wait=wait,
        )
        for name, wait in (("start_given", False), ("start_one", True))
    },
    ("entity", Trigger.CANCEL, False): _moving(
        "cancel_of_entity",
        "entity",
        Trigger.CANCEL,
        {"label": "text", "entity": "text", "spared": "uuid[]"},
        _REASON,
    ),
}

# Values that an outcome has that was reached as planned.
COMPLETES: Final = frozenset(
    {
        "id",
        "from_state",
        "to_state",
        "from_attempt",
        "result",
        "reason_code",
        "reason",
        "actor",
        "ends",
        State.COMPLETED,
    }
)
COMPLETE: Final = Kept(
    name="complete_tasks",
    arguments={"changes": "json", "ids": "uuid[]", "at": "timestamptz"},
    columns=(*ALWAYS, "result"),
    text=lambda dialect: composed(dialect, "many", COMPLETES, selection="these", wait=False).sql,
)
FIRST_DUE: Final = Kept(
    name="first_from",
    arguments={
        "at": "timestamptz",
        "since": "timestamptz",
        "since_id": "uuid",
        "available_since": "timestamptz",
        "available_since_id": "uuid",
    },
    returns=(
        "TABLE (first_due timestamptz, due_id uuid, some_noted boolean, first_available timestamptz, available_id uuid,"
        " dead bigint)"
    ),
    settings=_FIRST,
    text=lambda dialect: dialect.sql("first_due"),
)
READY_KINDS: Final = Kept(
    name="ready_from",
    arguments={
        "task_keys": "text[]",
        "priorities": "smallint[]",
        "since": "timestamptz[]",
        "since_ids": "uuid[]",
        "before": "integer[]",
    },
    returns=(
        "TABLE (its_key text, its_priority smallint, its_due timestamptz, first_id uuid, some_on_hold boolean, dead bigint)"
    ),
    settings=_FIRST,
    text=lambda dialect: narrowed(dialect.sql("ready_kinds"), ()),
)
KEPT: Final = (*MOVES.values(), COMPLETE, FIRST_DUE, READY_KINDS)


@cache
def moves_call(selection: str, trigger: Trigger, columns: str, given: frozenset[str], *, wait: bool) -> str:
    """The call that does what ``advance`` does with the values of these names; empty: no function takes all of them."""
    kept = MOVES.get((selection, trigger, wait))
    if kept and given <= {*kept.arguments, *kept.constants} and {*columns.split(", ")} <= {*kept.columns}:
        return kept.call(columns)
    return ""


@cache
def completing(dialect: Dialect) -> Composed:
    """The call that completes tasks, and the columns that it returns: those that the statement itself returns."""
    columns = composed(dialect, "many", COMPLETES).columns
    return Composed(COMPLETE.call(", ".join(columns)), columns)
