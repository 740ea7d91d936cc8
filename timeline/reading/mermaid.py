"""A timeline as text that Mermaid draws: a ``flowchart``; a machine, a ``stateDiagram-v2``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from timeline.definition.machines import table_of
from timeline.definition.tables import BACK, IGNORE, STAY, Row
from timeline.reading.timeline_pictures import guards_of, starts_of

if TYPE_CHECKING:
    from timeline.definition import Definition


def mermaid_of(definition: Definition) -> str:
    """
    Write a timeline as text for Mermaid: its starts, its tasks with their times and guards, their followers, and its exits.

    A machine is written as its table. Events that all working or all open states take are a note, because lines from each state
    would hide the others.
    """
    lines = _lines(definition) if definition.machine is not None else _flow(definition)
    return "\n".join(lines) + "\n"


def _flow(definition: Definition) -> Iterator[str]:
    names = {task: f"t{number}" for number, task in enumerate(definition.tasks)}
    yield "flowchart LR"
    yield f'    run(["{_escaped(" · ".join(starts_of(definition) or [definition.name]))}"])'
    for task, name in names.items():
        declared = definition.tasks[task]
        said = [declared.title or task, declared.describe(), *guards_of(declared)]
        yield f'    {name}["{"<br>".join(_escaped(part) for part in said if part)}"]'
    for task, name in names.items():
        if (when := definition.tasks[task].when) is not None:
            yield f"    {names.get(when.predecessor_name, 'run')} --> {name}"
    for number, (event, name) in enumerate(definition.exits.items()):
        yield f'    x{number}{{{{"{_escaped(f"{event} → {name}")}"}}}}'
        yield f"    run -.-> x{number}"


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
    """Replace characters that Mermaid would not read as text with their codes."""
    return re.sub(r"[^\w .,→-]", lambda letter: f"#{ord(letter[0])};", text)
