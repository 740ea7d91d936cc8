"""``created()``: a start that needs no event."""

from __future__ import annotations


class Created:
    """A start of its own: a row of the entity's model was inserted. Made by ``created()``."""

    def __repr__(self) -> str:
        return "created()"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Created)

    def __hash__(self) -> int:
        return hash(Created)


def created() -> Created:
    """Start a run for each inserted row of the entity's model; rows loaded from fixtures start none by themselves."""
    return Created()
