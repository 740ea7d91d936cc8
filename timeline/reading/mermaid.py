"""A machine as text that Mermaid draws: a ``stateDiagram-v2``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from timeline.definition.machines import table_of
from timeline.definition.tables import BACK, IGNORE, STAY, Row

if TYPE_CHECKING:
    from timeline.definition import Definition


def mermaid_of(definition: Definition) -> str:
    """
    Write a machine's table as Mermaid reads it.

    Events that all working or all open states take are a note: drawn from each state, they would hide the rest.

    Raises:
        InvalidInput: if it is no machine.
    """
    return "\n".join(_lines(definition)) + "\n"


def _lines(definition: Definition) -> Iterator[str]:
    table = table_of(definition)
    names = {state: f"s{number}" for number, state in enumerate(table.states)}
    yield "stateDiagram-v2"
    for state, name in names.items():
        yield f'    state "{_escaped(state)}" as {name}'
    yield f"    [*] --> {names[table.initial]}"
    for state, row in table.rows.items():
        yield from _ways(state, row, names)
    for state in table.states:
        if state in table.ends:
            yield f"    {names[state]} --> [*]"
    for row, whose in ((table.of_working, "any working state"), (table.of_open, "any open state")):
        if row:
            told = ", ".join(
                f"{event} → {target if isinstance(target, str) else target.name}" for event, target in row.items()
            )
            yield f"    note left of {names[table.initial]}: {whose} takes {_escaped(told)}"


def _ways(state: str, row: Row, names: Mapping[str, str]) -> Iterator[str]:
    for event, target in row.items():
        if target is BACK:
            yield f"    note right of {names[state]}: back by {_escaped(event)}"
        elif target is not IGNORE:
            end = names[state] if target is STAY else names[str(target)]
            yield f"    {names[state]} --> {end}: {_escaped(event)}"


def _escaped(text: str) -> str:
    """What Mermaid might read as more than text, as a code of the letter."""
    return re.sub(r"[^\w .,→-]", lambda letter: f"#{ord(letter[0])};", text)
