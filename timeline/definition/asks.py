"""What a machine asks people for: which events, and who may say them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from typing import Any, Final

from timeline.definition.reading_tables import Unreadable
from timeline.definition.tables import IGNORE, Table
from timeline.payloads import as_text

MAX_PERMISSION: Final = 200
_PERMISSION: Final = re.compile(r"[A-Za-z_][\w.]*\.\w+")


class Asked(Enum):
    """In ``asks``: somebody who is asked for what they are, whatever their permissions."""

    OWNER = "OWNER"  # Whom the entity belongs to: the timeline's ``owner``, or the entity itself, if it is an account.

    def __repr__(self) -> str:
        return self.name


OWNER: Final = Asked.OWNER


@dataclass(frozen=True, slots=True)
class Ask:
    """
    Who may say an event.

    Args:
        permissions: Names as ``shop.resolve_order``; staff who have one of them.
        owner: Whether the entity's owner may.
    """

    permissions: tuple[str, ...] = ()
    owner: bool = False


def read_asks(declared: object, table: Table) -> dict[str, Ask]:
    """
    Read ``asks``: event → a permission, ``OWNER``, or several of these, of which one is enough.

    Raises:
        Unreadable: for the first mistake found; it names the event.
    """
    if not isinstance(declared, Mapping):
        remedy = 'Use a dict: {"operator.resolved": "shop.resolve_order", "otp.given": OWNER}.'
        raise Unreadable(f"has asks = {declared!a:.60}.", remedy)
    return {_event(event, table): _ask(event, who) for event, who in declared.items()}


def _event(name: object, table: Table) -> str:
    said = as_text(name) if isinstance(name, str) else ""
    if said not in table.events:
        near = get_close_matches(said, table.events, n=1)
        remedy = f"Did you mean {near[0]!r}?" if near else "Name an event of its table."
        raise Unreadable(f"has asks for {name!a:.60}, which no state takes.", remedy)
    if not any(table.takes(state).get(said, IGNORE) is not IGNORE for state in table.states):
        raise Unreadable(f"has asks for {said!r}, which all states ignore.", "Let it lead somewhere.")
    return said


def _ask(event: object, who: object) -> Ask:
    several: Collection[Any] = who if isinstance(who, tuple | list | set | frozenset) else (who,)
    for one in several:
        if one is not OWNER and not (isinstance(one, str) and _is_permission(as_text(one))):
            remedy = 'Name one as has_perm() takes it, "app.codename", or say OWNER.'
            raise Unreadable(f"asks for {event!a:.60} by {one!a:.60}, which is no permission.", remedy)
    if not several:
        raise Unreadable(f"asks nobody for {event!a:.60}.", "Name a permission, or leave the event out.")
    permissions = sorted({as_text(one) for one in several if one is not OWNER})
    return Ask(tuple(permissions), OWNER in several)


def _is_permission(name: str) -> bool:
    return len(name) <= MAX_PERMISSION and _PERMISSION.fullmatch(name) is not None


def owner_problems(asks: Mapping[str, Ask], *, has_owner: bool) -> Iterator[tuple[str, str]]:
    """Say which event is asked of an owner, where an entity can have none, as (problem, remedy)."""
    if of_owner := [event for event, ask in asks.items() if ask.owner and not has_owner]:
        yield (
            f"asks the owner for {of_owner[0]!r}, and its entities have none.",
            'Name the foreign key that leads to a user: owner = "account"; or name a permission.',
        )
