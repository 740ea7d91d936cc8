"""A machine as text for Mermaid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from timeline.features.machines.choices import edges_of, line_of
from timeline.features.machines.declaration import table_of
from timeline.features.machines.table import BACK, IGNORE, STAY, Row
from timeline.reading.text_pictures import escaped

if TYPE_CHECKING:
    from timeline.definition import Definition


def table_as_mermaid(definition: Definition) -> str:
    """Write a machine as its table; events that all open states take are a note."""
    return "\n".join(_lines(definition)) + "\n"


def _lines(definition: Definition) -> Iterator[str]:
    table = table_of(definition)
    names = {state: f"s{number}" for number, state in enumerate(table.states)}
    yield "stateDiagram-v2"
    for state, name in names.items():
        yield f'    state "{escaped(definition.titled(state))}" as {name}'
    yield f"    [*] --> {names[table.initial]}"
    for state, row in table.rows.items():
        yield from _ways(state, row, names)
    for state in table.states:
        if state in table.ends:
            yield f"    {names[state]} --> [*]"
    for row, whose in ((table.of_working, "any working state"), (table.of_open, "any open state")):
        if row:
            told = ", ".join(
                line_of(event, edge.told, getattr(edge.target, "name", str(edge.target)))
                for event, target in row.items()
                for edge in edges_of(target)
            )
            yield f"    note left of {names[table.initial]}: {whose} takes {escaped(told)}"


def _ways(state: str, row: Row, names: Mapping[str, str]) -> Iterator[str]:
    for event, edge in ((event, edge) for event, target in row.items() for edge in edges_of(target)):
        said, target = f"{event} {edge.told}".strip(), edge.target
        if target is BACK:
            yield f"    note right of {names[state]}: back by {escaped(said)}"
        elif target is not IGNORE:
            end = names[state] if target is STAY else names[str(target)]
            yield f"    {names[state]} --> {end}: {escaped(said)}"
