"""Which tasks are not taken, though they are available: features keep them from running, see ``Hindrance``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from timeline.hooks import Kept, hooks

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet


class LeftOut(NamedTuple):
    """What all features keep from running."""

    kept: tuple[Kept, ...] = ()

    @property
    def parts(self) -> frozenset[str]:
        """Names of the optional lines of statements that leave out some tasks of a kind."""
        return frozenset().union(*(each.parts for each in self.kept))

    def covers(self, task_key: str) -> bool:
        """Whether a kind is left out as a whole."""
        return any(each.covers(task_key) for each in self.kept)


NOTHING: Final = LeftOut()


def left_out(*, using: str) -> LeftOut:
    """Read it."""
    return LeftOut(tuple(each.kept(using=using) for each in hooks().hindrances))


def taken_of(tasks: ScheduledTaskQuerySet, kept: Kept, *, task_keys: Iterable[str]) -> ScheduledTaskQuerySet:
    """Narrow tasks of these kinds down to those that are not left out."""
    return tasks.with_handler([key for key in task_keys if not kept.covers(key)]).with_parts(kept.parts)
