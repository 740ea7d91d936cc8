"""``Then``: what a handler of a machine returns to move it."""

from __future__ import annotations

from typing import Any

from timeline.payloads import as_text


class Then:
    """
    What a handler of a machine returns to move it: outcome, event and move are one transaction.

    If the state does not take the event by then, nothing of it is written, and the attempt has failed.

    Args:
        event: Of the machine's table.
        payload: Of the event; plain JSON.
    """

    __slots__ = ("event", "payload")

    def __init__(self, event: str, /, **payload: Any) -> None:
        self.event = as_text(event)
        self.payload = payload

    def __repr__(self) -> str:
        said = "".join(f", {name}={value!r}" for name, value in self.payload.items())
        return f"Then({self.event!r}{said})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Then) and (self.event, self.payload) == (other.event, other.payload)

    __hash__ = None  # type: ignore[assignment]  # Its payload has none.
