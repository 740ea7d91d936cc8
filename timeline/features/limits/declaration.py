"""``Limit``: how many tasks of a kind, or of a key, may be under way at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict

from timeline.definition.names import key_with
from timeline.timing.keywords import known_arguments

if TYPE_CHECKING:
    from timeline.definition.handlers import Task


MAX_LIMIT: Final = 1_000

Until = Literal["attempt", "end"]
OnDiscard = Literal["hold", "open"]

# Behind what ``held_until`` says of a row of which something is half done: an attempt at it has kept its place, or it took that
# over from one of which that is so.
HALF_DONE: Final = "+"


@known_arguments
@dataclass(frozen=True)
class Limit:
    """
    How many tasks may be under way at once.

    Args:
        most: How many; 1 to 1,000.
        key: Tasks of any kind that name the same key share its places. Left out: tasks of this kind share them.
        by: A field of the entity: there are so many places for each of its values.
        until: When a place is free again: at the end of an ``"attempt"``, or at the ``"end"`` of the task. Then nothing else
            takes the place while it rests, or waits to be tried again.
        on_discard: With ``until="end"``: what happens to the place if a task was started and does not complete. ``"hold"``: it
            stays taken until a person opens it. ``"open"``: it is free.
    """

    most: int
    key: str = ""
    by: str = ""
    until: Until = "attempt"
    on_discard: OnDiscard = "hold"

    @property
    def held_until(self) -> str:
        """Until when a task holds its place, as its row has it."""
        if self.until == "attempt":
            return "attempt"
        return "end" if self.on_discard == "open" else "opened"

    def key_of(self, task_key: str, value: object = None) -> str:
        """
        What a task competes for: 100 characters at most; see ``key_with``. ``value`` is that of the field that ``by`` names.
        """
        return key_with(self.key or task_key, value, by=self.by)


class LimitOptions(TypedDict, total=False):
    """
    Args:
        limit: How many may run at the same time; or a ``Limit``, which also says what competes. None: any number.
    """

    limit: int | Limit | None


def limit_of(declared: Task[Any, ..., Any]) -> Limit | None:
    """How many of a task may be under way at once; None: any number."""
    limit: int | Limit | None = declared.options.limit
    return Limit(limit) if isinstance(limit, int) else limit
