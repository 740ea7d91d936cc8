"""``Limit``: how many tasks of a kind, or of a key, may be under way at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal

from timeline.timing.keywords import known_arguments

if TYPE_CHECKING:
    from timeline.definition.definitions import Definition
    from timeline.definition.handlers import Task


MAX_LIMIT: Final = 1_000
MAX_KEY: Final = 100

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
        What a task competes for: 100 characters at most. The end of a longer key, or of one with a NUL, which SQLite does not
        find again, is a digest. ``value`` is that of the field that ``by`` names.
        """
        key = self.key or task_key
        whole = f"{key}:{value}" if self.by else key
        if len(whole) <= MAX_KEY and "\x00" not in whole:
            return whole
        begins, digest = (
            whole.replace("\x00", "")[: MAX_KEY - 33],
            sha256(whole.encode(errors="surrogatepass")).hexdigest(),
        )
        return f"{begins}~{digest[:32]}"


def limit_problems(definition: Definition, declared: Task[Any, ..., Any]) -> Iterator[tuple[str, str]]:
    """List what is wrong with the limit of a task, as (problem, remedy)."""
    limit = declared.options.limit
    if limit is None:
        return
    if not isinstance(limit, Limit) and type(limit) is not int:
        yield f"has limit = {limit!r}.", "Use a whole number, or Limit(…)."
        return
    if declared.options.bulk is not None:
        yield "has bulk and limit: one call takes many at once.", "Leave out one of them."
    yield from _limit_problems(definition, limit if isinstance(limit, Limit) else Limit(limit))


def _limit_problems(definition: Definition, limit: Limit) -> Iterator[tuple[str, str]]:
    if type(limit.most) is not int or not 1 <= limit.most <= MAX_LIMIT:
        yield f"has a limit of {limit.most!r}.", f"Use a whole number from 1 to {MAX_LIMIT:,}."
    if not isinstance(limit.key, str) or len(limit.key) > MAX_KEY:
        yield f"has a limit with key = {limit.key!r}.", f"Use text of {MAX_KEY} characters at most."
    if not isinstance(limit.by, str):
        yield f"has a limit with by = {limit.by!r}.", "Name a field of the entity, as text."
    elif limit.by and not definition.label:
        yield f"has a limit by {limit.by!r}, but no entity to read it from.", "Leave by out, or name the entity."
    if limit.until not in ("attempt", "end"):
        yield f"has a limit with until = {limit.until!r}.", 'Use "attempt" or "end".'
    if limit.on_discard not in ("hold", "open"):
        yield f"has a limit with on_discard = {limit.on_discard!r}.", 'Use "hold" or "open".'
    elif limit.on_discard == "open" and limit.until == "attempt":
        yield (
            'has a limit with on_discard = "open", and until = "attempt", where a place is free in any case.',
            'Leave on_discard out, or give until="end".',
        )
