"""The attempts that one thread has begun: either the thread enters one, or the supervisor gives it back; never both."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from time import monotonic
from typing import Final, TypeVar
from uuid import UUID

from django.db import DatabaseError, InterfaceError

from timeline.conf import get_settings
from timeline.engine.groups import Attempt, Keeper, Watch, fail_for_time, give_back
from timeline.exceptions import TimedOut
from timeline.models import ScheduledTask
from timeline.store.database_errors import drop
from timeline.worker.timed_call import TimedCall, interruptibly

logger = logging.getLogger("timeline")

PATIENCE: Final = 0.7  # After so many seconds without progress, waiting attempts are given back.

Answer = TypeVar("Answer")
Key = tuple[UUID, int]


def key_of(task: ScheduledTask) -> Key:
    """An attempt, named by its task and its number."""
    return task.id, task.attempt


class ThreadWatch(Watch):
    """
    The watch of one thread of a worker: it knows which attempts the thread has begun and not entered.

    The thread takes each attempt just before it enters its handler. If it takes none for a while, the supervisor takes all
    waiting attempts, and gives them back on a connection of its own. What one has taken the other leaves alone. ``more``,
    ``hand_on`` and ``disown`` are as for ``GroupRunner``.
    """

    def __init__(
        self,
        watch: Watch,
        *,
        clock: Callable[[], datetime],
        using: str,
        more: Callable[[str, int], list[Attempt]] | None = None,
        hand_on: Callable[[], object] | None = None,
        disown: Callable[[threading.Thread], bool] | None = None,
    ) -> None:
        self.using = using
        self._watch = watch
        self._clock = clock
        self._more = more
        self._hand_on = hand_on
        self._disown = disown
        self._lock = threading.Lock()
        self._since = monotonic()  # When the thread last made progress.
        self._waiting: dict[Key, Attempt] = {}
        self._taken_away: set[Key] = set()
        self._owed: list[Attempt] = []  # Taken away from the thread, but not yet given back in the database.
        self._timed: dict[Key, TimedCall] = {}
        self._failing: list[tuple[TimedCall, str]] = []  # Calls whose time is up, and where they were; not written yet.
        self._looks = 0  # How many last looks are under way.
        self._has_failed = False
        self._is_disowned = False
        self._seen_to = threading.Lock()
        self._lending = threading.Lock()
        self._record: Callable[[], None] | None = None
        self._break_off: Callable[[], object] | None = None
        self._sharing: Sequence[Attempt] = ()  # Attempts entered in the transaction that it breaks off.
        self._rest = 0.0
        self.closed = False  # Whether its thread has ended.
        self._closed_at = 0.0
        self._handed_on = 0.0  # The value of ``_since`` when ``hand_on`` was last called.

    def stopping(self) -> bool:
        """Whether to enter no further handler: the worker stops, or another thread has replaced this one."""
        return self._is_disowned or self._watch.stopping()

    def entered(self, *tasks: ScheduledTask) -> None:
        """Extend the leases of these attempts."""
        self._watch.entered(*tasks)

    def left(self, *tasks: ScheduledTask) -> None:
        """Stop extending them."""
        with self._lock:
            if self._waiting:
                for task in tasks:
                    self._waiting.pop(key_of(task), None)
        self._watch.left(*tasks)

    def took(self, task_key: str, count: int, seconds: float) -> None:
        """Learn the pace."""
        self._watch.took(task_key, count, seconds)

    def keeper(self) -> Keeper | None:
        """The keeper of outcomes that cannot be written now."""
        return self._watch.keeper()

    def make_room(self) -> bool:
        """Wait while it keeps too many."""
        return self._watch.make_room()

    def line_up(self, attempts: Iterable[Attempt]) -> None:
        """Let the supervisor give these attempts back if they are not taken soon."""
        with self._lock:
            if not self._waiting:
                self._since = monotonic()
            self._waiting.update((key_of(attempt.task), attempt) for attempt in attempts)

    def remaining(self, attempts: Sequence[Attempt]) -> list[Attempt]:
        """The attempts that the supervisor has not taken away."""
        if not self._taken_away:
            return list(attempts)
        with self._lock:
            return [attempt for attempt in attempts if key_of(attempt.task) not in self._taken_away]

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Be patient for the length of a lease: else tasks with a slow look would be given back again and again."""
        with self._lock:
            self._looks += 1
        try:
            yield
        finally:
            with self._lock:
                self._looks -= 1
                self._since = monotonic()

    def is_killed(self) -> bool:
        """Whether this process is being ended from outside."""
        return self._watch.is_killed()

    def abandon(self) -> None:
        """Let the supervisor give back waiting attempts, because an error ends the run."""
        with self._lock:
            self._has_failed = True
            self._take_all()

    def take(self, attempt: Attempt) -> bool:
        """Take the attempt, unless the supervisor has taken it."""
        key = key_of(attempt.task)
        with self._lock:
            self._since = monotonic()
            self._waiting.pop(key, None)
            return not self._taken_away or key not in self._taken_away

    @property
    def owes(self) -> bool:
        """Whether attempts were taken away, and this is not written yet."""
        return bool(self._owed or self._failing)

    def is_over(self, now: float) -> bool:
        """Whether its thread has ended, and everything is written or the leases of the rest have had time to run out."""
        return self.closed and not (self.owes and now - self._closed_at < get_settings().LEASE.total_seconds())

    def rest(self, until: float) -> None:
        """Leave it alone until then, by ``monotonic()``, because the database failed."""
        self._rest = until

    def more(self, task_key: str, most: int) -> list[Attempt]:
        """Begin more of a kind, and let the supervisor give them back if they are not taken soon."""
        attempts = self._more(task_key, most) if self._more is not None else []
        self.line_up(attempts)
        return attempts

    def call(self, attempts: Sequence[Attempt], act: Callable[[], Answer], *, undone: Sequence[Attempt] = ()) -> Answer:
        """Call a handler that may take only so long; ``TimedOut`` if its time was up, even if it came back with a result."""
        timed = TimedCall(attempts, undone)
        with self._lock:
            self._timed[key_of(attempts[0].task)] = timed
        try:
            return interruptibly(act, is_time_up=lambda: timed.is_late) if timed.in_main else act()
        finally:
            if not self.is_in_time(attempts[0]):
                task = attempts[0].task
                raise TimedOut(task.pk, task.attempt, timed.timeout) from None

    def under_way(self, attempt: Attempt, cancel: Callable[[], object]) -> None:
        """A coroutine that may take only so long is under way."""
        with self._lock:
            self._timed[key_of(attempt.task)] = TimedCall([attempt], cancel=cancel)

    def is_in_time(self, attempt: Attempt) -> bool:
        """A coroutine has come back: tell whether in time."""
        with self._lock:
            timed = self._timed.pop(key_of(attempt.task), None)
            return timed is None or not timed.is_late

    def lend(self, record: Callable[[], None] | None) -> None:
        """Let the supervisor record finished outcomes, if this thread is held up; waits while it does."""
        with self._lending:
            self._record = record

    def lend_transaction(self, entered: Sequence[Attempt], break_off: Callable[[], object] | None) -> None:
        """Let the supervisor break off the transaction, if this thread is held up; waits while it does."""
        with self._lending:
            self._sharing, self._break_off = entered, break_off

    def close(self) -> None:
        """The thread has ended; wait for anything that the supervisor is writing."""
        with self._seen_to:
            self.closed, self._closed_at = True, monotonic()

    def see_to(self, now: float) -> bool:
        """
        Fail attempts whose time is up, and give back those that wait too long, on the supervisor's thread. Tells whether there
        was anything to write. ``now`` is by ``monotonic()``.
        """
        with self._seen_to:
            return now >= self._rest and self._see_to(now)

    def _see_to(self, now: float) -> bool:
        late = self._see_to_time(now)
        since = self._take_away(now)
        if since != self._handed_on:
            self._break_up(since)
        if self._owed:
            why = "An error ended a worker's turn" if self._has_failed else "A handler holds up this worker"
            logger.warning("%s; given back, since they wait for it: %d.", why, len(self._owed))
            self._give_back()
        elif since == self._handed_on:
            return late
        with self._lending:
            if self._record is not None:
                self._record()
        if self._hand_on is not None:
            self._hand_on()
        self._handed_on = since
        return True

    def _break_up(self, since: float) -> None:
        """Break off the transaction that a handler holds open since then, and take the attempts entered before it."""
        with self._lending:
            with self._lock:
                sharing = self._sharing[:-1] if self._since == since else ()
            if not sharing or self._break_off is None:
                return
            if self._is_broken_off(self._break_off):
                self._break_off = None
                self._take_undone(sharing)
            else:
                logger.warning(
                    "Tasks that wait for the transaction that they share with that handler: %d.", len(sharing)
                )

    def _is_broken_off(self, break_off: Callable[[], object]) -> bool:
        try:
            return bool(break_off())
        except (DatabaseError, InterfaceError) as error:  # Waiting attempts are given back nevertheless.
            logger.warning("The transaction that a handler holds up is not broken off: %s", error)
            drop(self.using)
            return False

    def _take_undone(self, attempts: Sequence[Attempt]) -> None:
        """Take attempts that were entered, and were undone with their transaction."""
        with self._lock:
            taken = {key_of(attempt.task): attempt for attempt in attempts}
            self._owed += [attempt for key, attempt in taken.items() if key not in self._taken_away]
            self._taken_away |= taken.keys()

    def _give_back(self) -> None:
        owed = list(self._owed)
        left = give_back(owed, now=self._clock(), using=self.using, failed=self._has_failed)
        with self._lock:  # The thread may have abandoned more meanwhile.
            self._owed[: len(owed)] = left

    def _see_to_time(self, now: float) -> bool:
        """Fail attempts whose time is up, and interrupt calls that have not come back since; tell whether there were any."""
        with self._lock:
            late = [timed for timed in self._timed.values() if not timed.is_late and timed.is_up(now)]
            for timed in late:
                timed.is_late = True
                self._owed += timed.undone
                self._taken_away |= {key_of(attempt.task) for attempt in (*timed.attempts, *timed.undone)}
            hanging = [timed for timed in self._timed.values() if timed.is_late and timed.again_at <= now]
        self._failing += [(timed, timed.stack()) for timed in late]
        for timed in hanging:  # This comes first, so that the locks of its transaction do not block the write.
            timed.break_off(now)
        for timed in late:
            self._let_go(timed)
        acted = bool(self._failing)
        while self._failing:  # An attempt that cannot be written is still there next time.
            self._fail(*self._failing[0])
            del self._failing[0]
        return acted

    def _let_go(self, timed: TimedCall) -> None:
        if timed.cancel is None and not timed.in_main and self._disown is not None:
            self._is_disowned = self._disown(timed.thread)

    def _fail(self, timed: TimedCall, stack: str) -> None:
        fail_for_time(
            timed.attempts,
            timed.timeout,
            stack,
            now=self._clock(),
            using=self.using,
            keeper=self._watch.keeper(),
        )

    def _take_away(self, now: float) -> float:
        """Take the waiting attempts, if the thread is held up; give since when it is."""
        with self._lock:
            patience = get_settings().LEASE.total_seconds() if self._looks else PATIENCE
            if self.closed or now - self._since < patience:
                return self._handed_on
            self._take_all()
            return self._since

    def _take_all(self) -> None:
        self._owed += self._waiting.values()
        self._taken_away |= set(self._waiting)
        self._waiting.clear()
