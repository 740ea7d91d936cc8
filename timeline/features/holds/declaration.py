"""The options of ``@task`` that make a brake, and the tags by which kinds of task are held together."""

from __future__ import annotations

from datetime import timedelta
from typing import Final, TypedDict

PARKED_WITHIN: Final = timedelta(hours=1)


class HoldOptions(TypedDict, total=False):
    """
    Args:
        destructive: Whether it does something that nobody can undo: deletes, deactivates, charges. Needs ``park_above``.
        park_above: How many of this kind may start within ``park_within``. If more would start, the kind is put on hold, and
            people are told; it goes on when somebody releases the hold. See docs/how-to/brakes.md for the rule.
        park_within: Time within which starts count for ``park_above``; an hour by default, 7 days at most.
        tags: What its tasks have in common with those of other kinds, ``("mail",)``: one hold then stops them all.
    """

    destructive: bool
    park_above: int | None
    park_within: timedelta
    tags: tuple[str, ...]
