"""Errors of handlers, and a watch on their ``timeout``, while a clock runs them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from time import monotonic
from typing import Any, Final, TypeVar
from uuid import UUID

from django.db import connections, transaction

from timeline.engine.groups import Attempt, Watch, fail_for_time
from timeline.exceptions import HandlerSignal, LeaseLost, TimedOut
from timeline.models import ScheduledTask
from timeline.signals import Ending, attempts_failing
from timeline.timing import in_utc
from timeline.worker.timed_call import TimedCall, interruptibly

_NO_ERRORS: Final = (HandlerSignal, LeaseLost)  # ``TimedOut`` is a ``LeaseLost``.

AGAIN: Final = 1.0  # Seconds after which a handler that caught its interruption is interrupted once more.
Answer = TypeVar("Answer")


@contextmanager
def errors_of(task: ScheduledTask) -> Iterator[dict[int, BaseException]]:
    """Errors of this task in the block: attempt → error; neither ``Cancel``, ``Discard``, ``RetryAfter`` nor a ``timeout``."""
    found: dict[int, BaseException] = {}

    def hear(*, endings: Sequence[Ending], **_signal: Any) -> None:
        for ending in endings:
            if ending.task_id == task.id and ending.error is not None and not isinstance(ending.error, _NO_ERRORS):
                found[ending.attempt] = ending.error  # Again, if a transaction was undone meanwhile.

    name = _name(task.id)
    attempts_failing.connect(hear, weak=False, dispatch_uid=name)
    try:
        yield found
    finally:
        attempts_failing.disconnect(dispatch_uid=name)


def noted(error: BaseException, task: ScheduledTask, attempt: int, *, now: datetime) -> BaseException:
    """The error, with a note of whose it is."""
    about = f" of {task.entity_ref}" if task.entity_label else ""
    note = (
        f"Raised by attempt {attempt} at {task.full_key}{about}, {in_utc(now)}. Its outcome is recorded; the clock can go on. "
        "In a test about failures: StoryClock(raises=False), @pytest.mark.timeline(raises=False), or `with clock.failing():`."
    )
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)
    return error


def _name(task_id: UUID) -> str:
    return f"timeline.testing.{task_id}"


class TookTooLong(LeaseLost):
    """As ``TimedOut``, but connections stay open: the transaction of the test is theirs."""

    message = TimedOut.message

    def __init__(self, task: object, attempt: int, timeout: timedelta) -> None:
        super().__init__(task, attempt)
        self.timeout = timeout


class StoryWatch(Watch):
    """
    Interrupts a handler that takes longer than its ``timeout``; its attempt has failed, even if it comes back.

    A supervisor's own connection would not see the rows of a test, so ``record_late`` records this on the test's thread and
    connection. Only the main thread is interrupted; on others, the attempt has failed when its handler comes back.
    """

    def __init__(self, using: str) -> None:
        self._using = using
        self._alarms: dict[object, _Alarm] = {}
        self._late: list[_Alarm] = []

    def call(self, attempts: Sequence[Attempt], act: Callable[[], Answer], *, undone: Sequence[Attempt] = ()) -> Answer:
        """Call a handler that may take only so long; ``TookTooLong`` if its time was up."""
        timed = TimedCall(attempts, undone)
        with _whole_connections(self._using, is_atomic=bool(attempts[0].declared.options.atomic)) as mend:
            alarm = _Alarm(timed)
            try:
                return interruptibly(act, is_time_up=lambda: timed.is_late) if timed.in_main else act()
            finally:
                if alarm.stop():
                    mend()
                    self._late.append(alarm)
                    task = attempts[0].task
                    raise TookTooLong(task.pk, task.attempt, timed.timeout) from None

    def under_way(self, attempt: Attempt, cancel: Callable[[], object]) -> None:
        """A coroutine that may take only so long is under way."""
        self._alarms[attempt.task.id] = _Alarm(TimedCall([attempt], cancel=cancel))

    def is_in_time(self, attempt: Attempt) -> bool:
        """A coroutine has come back: tell whether in time."""
        alarm = self._alarms.pop(attempt.task.id, None)
        if alarm is None or not alarm.stop():
            return True
        self._late.append(alarm)
        return False

    def record_late(self, *, now: datetime) -> list[ScheduledTask]:
        """Record the failures of attempts whose time was up; give their tasks."""
        for alarm in self._alarms.values():
            alarm.stop()
        ended: list[ScheduledTask] = []
        for alarm in self._late:
            for attempt in alarm.timed.attempts:
                attempt.restore()
            timed = alarm.timed
            ended += fail_for_time(timed.attempts, timed.timeout, alarm.stack, now=now, using=self._using, keeper=None)
        return ended


class _Alarm:
    """Rings when the time of a call is up, and then each second until ``stop``."""

    def __init__(self, timed: TimedCall) -> None:
        self.timed = timed
        self.stack = ""
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._ring, name="timeline story clock", daemon=True)
        self._thread.start()

    def stop(self) -> bool:
        with self._lock:
            self._over.set()
        self._thread.join()
        return self.timed.is_late

    def _ring(self) -> None:
        if self._over.wait(min(self.timed.timeout.total_seconds(), threading.TIMEOUT_MAX)):
            return
        with self._lock:
            if self._over.is_set():
                return
            self.timed.is_late, self.stack = True, self.timed.stack()
        while True:
            self.timed.break_off(monotonic())
            if self._over.wait(AGAIN):
                return


@contextmanager
def _whole_connections(using: str, *, is_atomic: bool) -> Iterator[Callable[[], None]]:
    """
    Give a function that sets this thread's connections back to where they were in their transactions.

    A handler that is interrupted in ``atomic`` leaves Django with a wrong idea of its savepoints. Interrupted in a query on
    PostgreSQL without a transaction, it makes the test's transaction refuse all: that goes back to before the handler.
    """
    within = [connection for connection in connections.all(initialized_only=True) if connection.in_atomic_block]
    were = [(connection, list(connection.savepoint_ids), list(connection.atomic_blocks)) for connection in within]
    ours = connections[using]
    point = transaction.savepoint(using=using) if ours in within and not is_atomic else None

    def mend() -> None:
        for connection, savepoint_ids, atomic_blocks in were:
            connection.savepoint_ids, connection.atomic_blocks = savepoint_ids, atomic_blocks
            connection.in_atomic_block, connection.needs_rollback = True, False
        if point is not None and not ours.is_usable():
            transaction.savepoint_rollback(point, using=using)

    yield mend
