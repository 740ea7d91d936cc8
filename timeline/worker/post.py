"""A post: what one thread has begun. It enters it, or the warden gives it back; never both."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from time import monotonic
from typing import Final
from uuid import UUID

from timeline.models import ScheduledTask
from timeline.operations.running import Attempt, Keeper, Watch, give_back

logger = logging.getLogger("timeline")

PATIENCE: Final = 0.7  # Seconds without progress after which what waits is given back.

Key = tuple[UUID, int]


def key_of(task: ScheduledTask) -> Key:
    """An attempt by its task and its number."""
    return task.pk, task.attempt


class Post(Watch):
    """
    The worker's watch as one of its threads has it, and what that thread has begun and not entered.

    The thread takes each attempt just before it enters it. If it takes none for a while, the warden takes all that wait, and
    gives them back on its own connection. What one has taken, the other leaves.

    Args:
        watch: The worker's.
        clock: Tells story time.
        using: Database alias.
        more: Begins more of a kind, so many at most.
        hand_on: Called when the thread is held up: lets others have what it was given and has not begun.
    """

    def __init__(
        self,
        watch: Watch,
        *,
        clock: Callable[[], datetime],
        using: str,
        more: Callable[[str, int], list[Attempt]] | None = None,
        hand_on: Callable[[], object] | None = None,
    ) -> None:
        self.using = using
        self._watch = watch
        self._clock = clock
        self._more = more
        self._hand_on = hand_on
        self._lock = threading.Lock()
        self._since = monotonic()  # When the thread last got on.
        self._waiting: dict[Key, Attempt] = {}
        self._taken_away: set[Key] = set()
        self._owed: list[Attempt] = []  # Taken away, and not written down yet.
        self._lending = threading.Lock()
        self._record: Callable[[], None] | None = None
        self._rest = 0.0
        self.closed = False  # Whether its thread has gone.
        self._handed_on = 0.0  # When it had last got on, when that was handed on last.

    def stopping(self) -> bool:
        """Whether to enter no further handler."""
        return self._watch.stopping()

    def entered(self, task: ScheduledTask) -> None:
        """Keep up the lease of this attempt."""
        self._watch.entered(task)

    def left(self, task: ScheduledTask) -> None:
        """Let it go."""
        with self._lock:
            self._waiting.pop(key_of(task), None)
        self._watch.left(task)

    def took(self, task_key: str, count: int, seconds: float) -> None:
        """Learn the pace."""
        self._watch.took(task_key, count, seconds)

    def keeper(self) -> Keeper | None:
        """Who keeps outcomes that cannot be written now."""
        return self._watch.keeper()

    def make_room(self) -> bool:
        """Wait while too many of them are kept."""
        return self._watch.make_room()

    def hold(self, attempts: Iterable[Attempt]) -> None:
        """Let the warden give these back if they are not taken soon."""
        with self._lock:
            if not self._waiting:
                self._since = monotonic()
            self._waiting.update((key_of(attempt.task), attempt) for attempt in attempts)

    def remaining(self, attempts: Sequence[Attempt]) -> list[Attempt]:
        """Those that the warden has not taken away."""
        if not self._taken_away:
            return list(attempts)
        with self._lock:
            return [attempt for attempt in attempts if key_of(attempt.task) not in self._taken_away]

    def take(self, attempt: Attempt) -> bool:
        """Take it, unless the warden has."""
        key = key_of(attempt.task)
        with self._lock:
            self._since = monotonic()
            self._waiting.pop(key, None)
            return key not in self._taken_away

    @property
    def owes(self) -> bool:
        """Whether something was taken away and is not written down yet."""
        return bool(self._owed)

    def rest(self, until: float) -> None:
        """Let it alone until then, by ``monotonic()``: the database failed."""
        self._rest = until

    def more(self, task_key: str, most: int) -> list[Attempt]:
        """Begin more of a kind, and let the warden give them back if they are not taken soon."""
        attempts = self._more(task_key, most) if self._more is not None else []
        self.hold(attempts)
        return attempts

    def lend(self, record: Callable[[], None] | None) -> None:
        """Let the warden record what has ended, if this thread is held up; waits while it does."""
        with self._lending:
            self._record = record

    def see_to(self, now: float) -> bool:
        """
        Give back what waits for too long. On the warden's thread.

        Args:
            now: By ``monotonic()``.

        Returns:
            Whether there was anything to write.
        """
        if now < self._rest:
            return False
        since = self._take_away(now)
        if self._owed:
            logger.warning("Another task holds up this worker; %d that wait are given back.", len(self._owed))
            self._owed = give_back(self._owed, now=self._clock(), using=self.using)
        elif since == self._handed_on:
            return False
        with self._lending:
            if self._record is not None:
                self._record()
        if self._hand_on is not None:
            self._hand_on()
        self._handed_on = since
        return True

    def _take_away(self, now: float) -> float:
        """Take what waits, if the thread is held up; say since when it is."""
        with self._lock:
            if self.closed or now - self._since < PATIENCE:
                return self._handed_on
            self._owed += self._waiting.values()
            self._taken_away |= set(self._waiting)
            self._waiting.clear()
            return self._since
