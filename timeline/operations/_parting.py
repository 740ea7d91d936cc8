"""Parts of a sweep: what each has to say, and how what cannot be mended together is mended one by one."""

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
    What was done.

    Args:
        looked: Runs, and rows of entities, that were looked at.
        mended: Runs that had drifted from their entity or their definition, and are reconciled.
        started: Runs begun for entities that had none.
        left: Whether there may be more: call again.
    """

    looked: int = 0
    mended: int = 0
    started: int = 0
    left: bool = False


class Taken(NamedTuple):
    """The next few of a part; where it has come to, as plain data; and whether its round is over with them."""

    some: Sequence[Any]
    position: dict[str, Any]
    is_last: bool


class Part(ABC, Generic[Item]):
    """
    What is gone through from a beginning to an end, again and again. ``name`` is its row's key; ``most`` are taken at a time.
    """

    name: str
    most: int = 500

    @abstractmethod
    def take(self, position: dict[str, Any], *, begins: bool, size: int, using: str) -> Taken:
        """Read the next few; ``position`` is empty the first time ever, and ``begins`` tells that a round does."""

    @abstractmethod
    def mend(self, some: Sequence[Item], *, now: datetime, using: str) -> Swept:
        """Look at them, and mend what is to be mended."""


def each_if_not_all(items: Sequence[Item], act: Callable[[Sequence[Item]], int], *, using: str) -> int:
    """
    Do something with all of them in a transaction that waits for nobody; where that fails, with each in one of its own.

    What fails then is left for the next round, with a line in the log. Gives the sum of what each call gives.
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
