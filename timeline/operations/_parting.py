"""Parts of a sweep: what each part does, and how to mend items one by one if they cannot be mended together."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

from django.db import connections

from timeline.store.errors import catching
from timeline.store.polling import AT_ONCE, polling

logger = logging.getLogger("timeline")

Item = TypeVar("Item")


class Swept(NamedTuple):
    """
    What a sweep did.

    Args:
        looked: How many runs and rows of entities were checked.
        mended: How many runs had drifted from their entity or their definition, and were reconciled.
        started: How many runs were begun for entities that had none.
        left: Whether there may be more: call again.
    """

    looked: int = 0
    mended: int = 0
    started: int = 0
    left: bool = False


class Taken(NamedTuple):
    """The next items of a part, the position after them (as plain data), and whether the round is over with them."""

    some: Sequence[Any]
    position: dict[str, Any]
    is_last: bool


class Part(ABC, Generic[Item]):
    """
    Something that a sweep goes through from beginning to end, again and again. ``name`` is the key of its row; ``most``: how
    many items are taken at a time.
    """

    name: str
    most: int = 500

    @abstractmethod
    def take(self, position: dict[str, Any], *, begins: bool, size: int, using: str) -> Taken:
        """Read the next items. ``position`` is empty the first time ever; ``begins``: whether a round begins."""

    @abstractmethod
    def mend(self, some: Sequence[Item], *, now: datetime, using: str) -> Swept:
        """Check the items, and mend those that are wrong."""


def each_if_not_all(items: Sequence[Item], act: Callable[[Sequence[Item]], int], *, using: str) -> int:
    """
    Do something with all items in one transaction that waits for no lock. If this fails, do it with each item in a transaction
    of its own.

    An item that fails then is left for the next round, with a line in the log. Gives the sum of the results.
    """
    if not items:
        return 0
    caught: list[Exception] = []
    with catching(caught), polling(using, AT_ONCE):
        return act(items)
    if not connections[using].is_usable():
        raise caught[0]
    if len(items) == 1:
        logger.warning("The sweep leaves %s for its next round: %s", items[0], caught[0])
        return 0
    return sum(each_if_not_all([item], act, using=using) for item in items)
