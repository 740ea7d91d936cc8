"""What a worker and a group of attempts tell each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, TypeVar

from timeline.engine.attempting import Attempt
from timeline.models import ScheduledTask

Answer = TypeVar("Answer")


class Keeper(Protocol):
    """Keeps outcomes that cannot be written now, with their leases, until they are written."""

    def keep(self, task: ScheduledTask, again: Callable[[], bool]) -> None:
        """
        Keep an outcome.

        Args:
            task: Whose lease is kept up until then.
            again: Tries once more, for a moment; says whether it is over: written, or not ours to write any more.
        """

    def is_full(self) -> bool:
        """Whether too many are kept for further ones."""

    def make_room(self, stopping: Callable[[], bool]) -> bool:
        """Wait until there is room for more, or until it is time to stop; say whether there was anything to wait for."""


class Watch:
    """Lets a run know whether to stop, and learns what is being run and how long it took. This one does neither."""

    def stopping(self) -> bool:
        """Whether to enter no further handler."""
        return False

    def entered(self, task: ScheduledTask) -> None:
        """An attempt is now held; its lease must be kept up."""

    def left(self, task: ScheduledTask) -> None:
        """It is no longer held."""

    def hold(self, attempts: Iterable[Attempt]) -> None:
        """These have been begun, and are going to be entered in a while."""

    def remaining(self, attempts: Sequence[Attempt]) -> list[Attempt]:
        """Those that nobody has given back since."""
        return list(attempts)

    def looking(self) -> AbstractContextManager[object]:
        """A last look is under way within a ``with`` block: no handler holds up those that wait for it."""
        return nullcontext()

    def abandon(self) -> None:
        """An error ends the run: let another thread give back what has been begun and not entered."""

    def take(self, attempt: Attempt) -> bool:  # noqa: ARG002 (who lets nobody give back need not know which)
        """Take an attempt to enter its handler; False: it was given back, and belongs to whoever begins it next."""
        return True

    def more(self, task_key: str, most: int) -> list[Attempt]:  # noqa: ARG002 (who runs what is given begins no more)
        """Begin more of a kind, to be run beside those that are under way: so many at most, and none that was tried before."""
        return []

    def call(self, attempts: Sequence[Attempt], act: Callable[[], Answer], *, undone: Sequence[Attempt] = ()) -> Answer:  # noqa: ARG002
        """
        Call a handler that may take only so long.

        Args:
            attempts: What it is called for.
            act: The call.
            undone: What shares its transaction, which is undone if its time is up.

        Raises:
            TimedOut: if its time was up: its attempts have failed.
        """
        return act()

    def under_way(self, attempt: Attempt, cancel: Callable[[], object]) -> None:
        """A coroutine that may take only so long is under way; ``cancel`` breaks it off, from any thread."""

    def is_in_time(self, attempt: Attempt) -> bool:  # noqa: ARG002
        """Whether it came back in time; otherwise its attempt has failed."""
        return True

    def took(self, task_key: str, count: int, seconds: float) -> None:
        """So many handlers of a kind took so long, together."""

    def lend(self, record: Callable[[], None] | None) -> None:
        """
        Let another thread record what has ended, if this one is held up before it can.

        Args:
            record: Records what has ended so far and leaves the rest; None: from now on, nobody else is to record anything.
        """

    def lend_transaction(self, entered: Sequence[Attempt], break_off: Callable[[], object] | None) -> None:
        """
        Let another thread break off the transaction of several handlers, if one of them holds up this thread.

        Those entered before it are given back then; it is entered again itself once it has come back.

        Args:
            entered: Whose handlers have been entered in it so far, in order; it grows.
            break_off: Ends the transaction from another connection; None: from now on, nobody is to.
        """

    def keep_up(self) -> None:
        """Wait for outcomes that lag too far behind, before another handler is entered."""

    def keeper(self) -> Keeper | None:
        """Who keeps outcomes that cannot be written now; None: whoever records them waits until they can."""
        return None

    def is_full(self) -> bool:
        """Whether too many outcomes are kept to begin more beside those that are under way."""
        keeper = self.keeper()
        return keeper is not None and keeper.is_full()

    def make_room(self) -> bool:
        """
        Wait while too many outcomes are kept: each is a handler that is entered again if this process dies.

        Returns:
            Whether there was anything to wait for.
        """
        return False

    def settle(
        self,
        tasks: Sequence[ScheduledTask],  # noqa: ARG002 (who records at once need not know whose they are)
        record: Callable[[], list[ScheduledTask]],
    ) -> list[ScheduledTask]:
        """
        Have the outcomes of these tasks recorded, now or soon.

        Returns:
            Tasks whose outcomes are recorded, these or earlier ones; each is given once.
        """
        return record()
