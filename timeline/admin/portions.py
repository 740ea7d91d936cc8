"""Pages that change many tasks portion by portion: how far they have come, and a turn within one request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from timeline.exceptions import TimelineError
from timeline.models import ScheduledTask
from timeline.timing import check_time

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet

PORTION: Final = 500  # Tasks that are read at once.
A_TURN: Final = 1.5  # Seconds of one request; then the page says how far it has come.


class Place(NamedTuple):
    """
    How far it has come: what was there ``before`` is meant, and looked at up to ``after``; None: nothing yet.

    No task behind the id ``last`` is meant: it was made since, by this perhaps. None: nobody looked.
    """

    before: datetime
    after: UUID | None
    changed: int
    left: int
    total: int
    last: UUID | None = None

    @property
    def looked(self) -> int:
        """How many were looked at."""
        return self.changed + self.left


def place_in(given: Mapping[str, str]) -> Place | None:
    """As a form says; None: it says nothing, or nothing that makes sense."""
    with suppress(KeyError, ValueError, TimelineError):
        after = UUID(given["after"]) if given["after"] else None
        last = UUID(given["last"]) if given.get("last") else None
        changed, left, total = (max(0, min(int(given[name]), 10**9)) for name in ("changed", "left", "total"))
        return Place(check_time("before", datetime.fromisoformat(given["before"])), after, changed, left, total, last)
    return None


def go_on(
    tasks: ScheduledTaskQuerySet, place: Place, act: Callable[[Sequence[ScheduledTask]], int]
) -> tuple[Place, bool]:
    """
    Act on portions of tasks, by id, for as long as one request may take; also say whether nothing is left to look at.

    ``act`` gets tasks with their runs, commits what it changes, and says how many it were.
    """
    give_up = monotonic() + A_TURN
    while True:
        rest = tasks.filter(pk__gt=place.after) if place.after else tasks
        some: list[Any] = list(rest.select_related("run").order_by("pk")[:PORTION])
        if not some:
            return place, True
        changed = act(some)
        place = place._replace(
            after=some[-1].pk, changed=place.changed + changed, left=place.left + len(some) - changed
        )
        if len(some) < PORTION:
            return place, True
        if monotonic() >= give_up:
            return place, False
