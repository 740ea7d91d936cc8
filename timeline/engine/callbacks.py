"""What a worker and a group of attempts tell each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, TypeVar

from timeline.engine.attempts import Attempt
from timeline.models import ScheduledTask

Answer = TypeVar("Answer")


class Keeper(Protocol):
    """Keeps outcomes that cannot be written now, with their leases, until they are written."""

    def keep(self, task: ScheduledTask, again: Callable[[], bool]) -> None:
        """Keep an outcome. ``again`` tries to write it, for a moment; True: written, or not ours any more."""

    def is_full(self) -> bool:
        """Whether too many are kept to take more."""

    def make_room(self, stopping: Callable[[], bool]) -> bool:
        """Wait until there is room for more, or until it is time to stop; tell whether there was anything to wait for."""


class Watch:
    """Tells a run whether to stop, and learns what is being run and how long it took. This base class does neither."""

    def stopping(self) -> bool:
        """Whether to enter no further handler."""
        return False

    def entered(self, *tasks: ScheduledTask) -> None:
        """These attempts are now held; their leases must be extended."""

    def left(self, *tasks: ScheduledTask) -> None:
        """The attempts are no longer held."""

    def line_up(self, attempts: Iterable[Attempt]) -> None:
        """These attempts have been begun, and will be entered later."""

    def remaining(self, attempts: Sequence[Attempt]) -> list[Attempt]:
        """Those of the attempts that nobody has given back since."""
        return list(attempts)

    def looking(self) -> AbstractContextManager[object]:
        """While the block runs, a last look is under way: no handler holds up the tasks that wait for it."""
        return nullcontext()

    def is_killed(self) -> bool:
        """Whether this process is being ended from outside: what comes out of a handler then is not the handler's own."""
        return False

    def abandon(self) -> None:
        """An error ends the run: let another thread give back tasks that were begun and not entered."""

    def take(self, attempt: Attempt) -> bool:  # noqa: ARG002 (who lets nobody give back need not know which)
        """Take an attempt to enter its handler; False: it was given back, and belongs to whoever begins it next."""
        return True

    def more(self, task_key: str, most: int) -> list[Attempt]:  # noqa: ARG002 (who runs what is given begins no more)
        """Begin at most so many tasks of a kind, to be run beside the running ones; none that was tried before."""
        return []

    def call(self, attempts: Sequence[Attempt], act: Callable[[], Answer], *, undone: Sequence[Attempt] = ()) -> Answer:  # noqa: ARG002
        """Call a handler that may take only so long; ``TimedOut`` if its time was up: then its attempts have failed."""
        return act()

    def under_way(self, attempt: Attempt, cancel: Callable[[], object]) -> None:
        """A coroutine that may take only so long is running; ``cancel`` interrupts it, from any thread."""

    def is_in_time(self, attempt: Attempt) -> bool:  # noqa: ARG002
        """Whether it came back in time; otherwise its attempt has failed."""
        return True

    def took(self, task_key: str, count: int, seconds: float) -> None:
        """So many handlers of a kind took so long together."""

    def lend(self, record: Callable[[], None] | None) -> None:
        """Let another thread call ``record`` if this one is held up before it can; None: from now on, none may."""

    def lend_transaction(self, entered: Sequence[Attempt], break_off: Callable[[], object] | None) -> None:
        """
        Let another thread break off the transaction of several handlers, if one of them holds up this thread; None: no more.
        Attempts ``entered`` before that one are given back then; it is entered again after it has come back.
        """

    def keep_up(self) -> bool:
        """Wait for outcomes that lag too far behind, before another handler is entered; tell whether that took time."""
        return False

    def keeper(self) -> Keeper | None:
        """The keeper of outcomes that cannot be written now; None: whoever records them waits until they can be written."""
        return None

    def is_full(self) -> bool:
        """Whether too many outcomes are kept to begin more tasks beside the running ones."""
        keeper = self.keeper()
        return keeper is not None and keeper.is_full()

    def make_room(self) -> bool:
        """Wait while too many outcomes are kept: a crash would repeat their handlers. Tell whether it had to wait."""
        return False

    def settle(
        self,
        tasks: Sequence[ScheduledTask],  # noqa: ARG002 (who records at once need not know whose they are)
        record: Callable[[], list[ScheduledTask]],
    ) -> list[ScheduledTask]:
        """Have the outcomes of these tasks recorded, now or soon. Give tasks recorded by now, also earlier ones, each once."""
        return record()
