"""Print into a pipe: ``manage.py timeline_explain … | head`` ends when its reader does."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from django.core.management.base import BaseCommand

ENDED_BY_ITS_READER: Final = 128 + signal.SIGPIPE  # As a shell reports it of any program.


class PipedCommand(BaseCommand):
    """Base of commands that print much: where nobody reads on, they end without a traceback, with status 141."""

    def run_from_argv(self, argv: Sequence[str]) -> None:
        """Run as from the command line; what calls the command from Python is not concerned."""
        with ending_with_its_reader():
            super().run_from_argv(list(argv))


@contextmanager
def ending_with_its_reader() -> Iterator[None]:
    """End the process where what is printed within the block goes into a pipe that nobody reads any more."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # Python writes out what is left when it ends, which would fail once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(ENDED_BY_ITS_READER) from None
