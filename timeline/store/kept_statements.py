"""
Statements whose plans PostgreSQL keeps: each is a function in the database, which ``migrate`` installs.

PostgreSQL plans a statement whenever it gets its text. For a statement that starts one task this takes longer than all the
rest. The plans of a function are kept as long as the connection. Prepared statements would be as fast, but many poolers do not
allow them.

The text of a function belongs to the version that has run ``migrate``, and processes of other versions call it, too. So a
function whose arguments change, or that returns a column no more, gets another name. A column that it returns besides needs
nothing: who calls names the columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from django.db import connections

from timeline.dialects import Dialect, dialect_of
from timeline.lifecycle import FINAL, LEASED, State, Trigger
from timeline.models.statements import narrowed
from timeline.models.task import ScheduledTask
from timeline.store.composing import ALWAYS, PARAMETER, VALUES, Composed, composed, steps_by
from timeline.store.guiding import IN_ORDER
from timeline.store.returning import FIELDS

# The migration since which there are these functions. Before it, ``migrate`` has not installed them yet.
SINCE: Final = "0072_kept_statements"

TABLE: Final = ScheduledTask._meta.db_table
_SEARCHES: Final = {"enable_seqscan": "off", "jit": "off"}
_REASON: Final = ("reason_code", "reason", "actor", "detail")


@dataclass(frozen=True, kw_only=True, eq=False)
class Kept:
    """
    One statement that is a function.

    Args:
        name: Name of the function, after ``timeline_``.
        arguments: Names of its parameters, in order, each with its type.
        columns: Columns of the task that it returns. To return whole rows would be slower: PostgreSQL makes one value of each
            row and takes it apart again, and reads long values, such as the payload, even if nobody asks for them.
        returns: What it returns, if these are not columns of the task.
        settings: Settings of PostgreSQL that hold while it is executed.
        text: Makes the text of the statement.
        constants: Parameters that have always the same value.
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
    A statement of ``advance``.

    Args:
        name: Name of the function.
        selection, trigger, wait: As for ``advance``.
        asked: The parameters of the selection, each with its type.
        given: Values that the move sets.
        columns, settings: As for ``Kept``.
    """
    steps = steps_by(trigger)
    end = steps[0][-1]
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
            composed(dialect, "found", touches, columns, selection=selection, steps=steps, wait=wait).sql
        ),
        constants={"to_state": end.value},
    )


KEYS: Final = ("id", "task_key", "queue")
_STARTED: Final = ("worker",)
_FIRST: Final = {**IN_ORDER, "enable_seqscan": "off"}

# What ``advance`` does: selection, move, and whether it waits for rows that are locked.
MOVES: Final[Mapping[tuple[str, Trigger, bool], Kept]] = {
    ("due", Trigger.DUE, False): _moving(
        "stage_due", "due", Trigger.DUE, {"most": "integer", "since": "timestamptz"}, columns=KEYS, settings=_FIRST
    ),
    ("shares", Trigger.CLAIM, False): _moving(
        "claim_shares",
        "shares",
        Trigger.CLAIM,
        {"task_keys": "text[]", "priorities": "integer[]", "sizes": "integer[]", "since": "timestamptz[]"},
        columns=KEYS,
        settings=_FIRST,
    ),
    ("group", Trigger.START, False): _moving(
        "start_group",
        "group",
        Trigger.START,
        {
            "task_key": "text",
            "priority": "integer",
            "most": "integer",
            "since": "timestamptz",
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
    name="first_due",
    arguments={"at": "timestamptz"},
    returns="TABLE (first_due timestamptz, some_noted boolean, some_available boolean)",
    settings=_FIRST,
    text=lambda dialect: dialect.sql("first_due"),
)
READY_KINDS: Final = Kept(
    name="ready_kinds",
    arguments={"task_keys": "text[]"},
    returns="TABLE (its_key text, its_priority smallint, its_due timestamptz, some_on_hold boolean)",
    settings=_FIRST,
    text=lambda dialect: narrowed(dialect.sql("ready_kinds"), ()),
)
KEPT: Final = (*MOVES.values(), COMPLETE, FIRST_DUE, READY_KINDS)


@cache
def moves_call(selection: str, trigger: Trigger, columns: str, given: frozenset[str], *, wait: bool) -> str:
    """
    The call that does what ``advance`` does with these arguments; empty: no function does.

    Args:
        selection, trigger, columns, wait: As for ``advance``.
        given: Names of the values that the move sets. One that the function does not take would be lost.
    """
    kept = MOVES.get((selection, trigger, wait))
    if kept and given <= {*kept.arguments, *kept.constants} and {*columns.split(", ")} <= {*kept.columns}:
        return kept.call(columns)
    return ""


@cache
def completing(dialect: Dialect) -> Composed:
    """The call that completes tasks, and the columns that it returns: those that the statement itself returns."""
    columns = composed(dialect, "many", COMPLETES).columns
    return Composed(COMPLETE.call(", ".join(columns)), columns)
