"""A bar on a terminal, for commands that take long; into a file or a pipe nothing is drawn."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Final, Self

WIDTH: Final = 30


class Bar:
    """
    How far a command has come, drawn over itself. A context manager; its line is wiped out at the end.

    Args:
        stdout: Of the command.
        total: How many there are.
    """

    def __init__(self, stdout: Any, total: int) -> None:
        self._stdout, self._total, self._drawn = stdout, total, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._drawn:
            self._stdout.write("\r" + " " * self._drawn + "\r", ending="")
            self._stdout.flush()

    def at(self, done: int) -> None:
        """Draw that so many are done."""
        if not self._stdout.isatty():
            return
        full = WIDTH if done >= self._total else WIDTH * done // self._total
        text = f"[{'#' * full}{'.' * (WIDTH - full)}] {done:,} / {max(done, self._total):,}"
        self._stdout.write("\r" + text.ljust(self._drawn), ending="")
        self._stdout.flush()
        self._drawn = len(text)
