"""Finds what is wrong with tasks that are bound to states of a machine."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from timeline.definition.definitions import Definition
    from timeline.definition.handlers import Task
    from timeline.definition.tables import Table

MAX_TASK_KEY: Final = 101  # Characters of the column.


def bound_problems(definition: Definition, declared: Task[Any, ..., Any]) -> Iterator[tuple[str, str]]:
    """List what is wrong with the states that a task is bound to, and with following one that is, as (problem, remedy)."""
    when = declared.when
    if when is None:
        return
    predecessor = definition.tasks.get(when.predecessor_name)
    if predecessor is not None and predecessor.is_in_state:
        remedy = "Let its handler return Then(…), and bind this one to the state where that leads: on(…)."
        yield f"follows {predecessor.name!r}, which comes again each time that its state is entered.", remedy
    if not when.during:
        return
    if definition.machine is None:
        yield f"is bound to the state {when.during[0]!r}, but its class is no machine.", "Inherit from Machine."
        return
    if when.backoff is not None and not declared.is_timer:
        yield "has a backoff.", "Only timers have: put it into timers; a task that fails has retry=…"
    yield from unknown_states(definition.machine, when.during)


def rest_problems(definition: Definition) -> Iterator[tuple[str, str]]:
    """
    List rests of a machine in which it might wait for ever, and what else is wrong with its timers, as (problem, remedy).

    A machine that does nothing by itself, names no working state and has nothing bound to one, only keeps a state: whoever
    moves it knows when.
    """
    table = definition.machine
    if table is None:
        return
    whens = (task.when for task in definition.tasks.values())
    due = {state for when in whens for state in getattr(when, "during", ())}
    acts = bool(table.working or due or definition.timers.never)
    without = (
        [] if not acts else [state for state in table.states if state in table.rests - due - definition.timers.never]
    )
    if without:
        shown = ", ".join(map(repr, without))
        yield (
            f"may rest for ever in {shown}, where nothing is ever due.",
            f'Give a timer, timers = {{"an.event": on({without[0]!r}, days=2)}}; or say so: {{({shown},): never}}.',
        )
    if twice := sorted(due & definition.timers.never):
        yield f"has something that is due in {twice[0]!r}, and says never of it.", "Leave one of them out."
    for name, timer in definition.timers.tasks.items():
        if len(definition.task_key(name)) > MAX_TASK_KEY:
            yield (
                f"has a timer of {timer.event!r}, whose name is too long.",
                "Use a shorter name for event or timeline.",
            )


def unknown_states(table: Table, states: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """List those states that a table does not have, or in which nothing is done, as (problem, remedy)."""
    for state in states:
        if state not in table.rows:
            near = get_close_matches(state, table.states, n=1)
            meant = f"Did you mean {near[0]!r}?" if near else f"Name one such as {table.initial!r}."
            yield f"names the state {state!r}, which has no row in the table.", meant
        elif state in table.ends:
            yield f"is bound to {state!r}, which is an end: its run is over there.", "Use starts_on = after_run(…)."
