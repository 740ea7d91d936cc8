"""The present test: what it says of its clocks, and which clocks there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from timeline.definition import Timeline
    from timeline.testing.clock import StoryClock


@dataclass(slots=True)
class PresentTest:
    """A test, as the plugin of pytest knows it: its file, the timelines it names, and its clocks, used up ones too."""

    file: str = ""
    only: Sequence[str | type[Timeline]] = ()
    raises: bool = True
    clocks: list[StoryClock] = field(default_factory=list)

    def told(self) -> str:
        """What its clocks ran, and what they left out, in lines."""
        return "\n".join(line for clock in self.clocks for line in clock.told())


_present: list[PresentTest] = []
_running: list[StoryClock] = []


@contextmanager
def in_test(test: PresentTest) -> Iterator[None]:
    """Let clocks that are made in the block be those of this test."""
    _present.append(test)
    try:
        yield
    finally:
        _present.remove(test)


def present_test() -> PresentTest | None:
    """The test that runs; None: only pytest's plugin knows it."""
    return _present[-1] if _present else None


@contextmanager
def running(clock: StoryClock) -> Iterator[None]:
    """Let this be a running clock within the block, and one of the present test."""
    _running.append(clock)
    if (test := present_test()) is not None:
        test.clocks.append(clock)
    try:
        yield
    finally:
        _running.remove(clock)


def running_clocks() -> list[StoryClock]:
    """The clocks that tell time just now."""
    return list(_running)
