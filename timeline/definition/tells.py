"""``tells``: of which states and events of a machine those outside are told."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

from timeline.definition.reading_tables import Unreadable
from timeline.definition.tables import IGNORE, Table
from timeline.payloads import as_text


def read_tells(declared: object, table: Table, *, starts: Collection[str]) -> frozenset[str]:
    """
    Read what a machine tells, as plain text.

    Args:
        declared: States of the table, and events that move it or begin it.
        table: As it was read.
        starts: Events that begin a run.

    Raises:
        Unreadable: for the first mistake found.
    """
    if isinstance(declared, str) or not isinstance(declared, Collection):
        raise Unreadable(f"has tells = {declared!a:.60}.", "Give states and events, as a tuple.")
    moving = {event for state in table.states for event, target in table.takes(state).items() if target is not IGNORE}
    known = {*table.states, *moving, *map(as_text, starts)}
    for name in declared:
        if isinstance(name, str) and as_text(name) in known:
            continue
        if isinstance(name, str) and as_text(name) in table.events:
            remedy = "Leave it out: only what moves a run is told."
            raise Unreadable(f"tells {as_text(name)!r}, which its table only ignores.", remedy)
        near = get_close_matches(as_text(name), sorted(known), n=1) if isinstance(name, str) else []
        meant = f"Did you mean {near[0]!r}? " if near else ""
        raise Unreadable(f"tells {name!a:.60}, which is no state and no event of it.", f"{meant}Name one of its table.")
    return frozenset(as_text(name) for name in declared)
