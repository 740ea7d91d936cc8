"""
Those whom billing calls, as a small server on loopback: payment processor, accounting, CRM, chat and tickets.

``python -m project.demo.outside --port 8010 --failing 0.05 --losing 0.02``. With ``--no-keys`` it takes each call for a new
one, as services do that know of no idempotency keys. ``GET /books`` says what it has done. It outlives its callers.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from time import sleep

if __name__ == "__main__":  # As a process it needs nothing of the site.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from project.demo.books import Books
from project.demo.faults import Faults
from project.demo.serving import Answering, Call

SERVICES = ("settle", "accounting", "crm", "chat", "tickets")


class Outside(Answering):
    """
    The server.

    Args:
        port: On loopback; 0: a free one.
        faults: What goes wrong.
        with_keys: Whether a call with a key that was there before is answered, and not done again.
        taking: Seconds that a call takes.
    """

    def __init__(
        self, port: int = 0, *, faults: Faults | None = None, with_keys: bool = True, taking: float = 0
    ) -> None:
        super().__init__(port, _Calls)
        self.faults = faults or Faults()
        self.books = Books(with_keys=with_keys)
        self.taking = taking


class _Calls(Call):
    """One call."""

    server: Outside

    def do_GET(self) -> None:
        """Say what was done: all of it, or what was paid out for a day."""
        place, _slash, day = self.path.strip("/").partition("/")
        if place == "books":
            self.answer(200, self.server.books.told())
        elif place == "settle" and day:
            self.answer(200, self.server.books.paid_for(day))
        else:
            self.answer(404, {})

    def do_POST(self) -> None:
        """Do what is asked for, unless that goes wrong."""
        service = self.path.strip("/")
        asked = self.read()
        key = self.headers.get("Idempotency-Key", "")
        if service not in SERVICES:
            self.answer(404, {})
            return
        sleep(self.server.taking)
        fault = self.server.faults.of(service)
        if fault == "refused":
            self.server.books.note("failed")
            self.answer(503, {})
            return
        done = self.server.books.do(service, asked, key)
        if fault == "lost":
            self.server.books.note("lost")
            self.close_connection = True
            return
        self.answer(200, done)


def main() -> None:
    """Answer until SIGTERM or Ctrl-C."""
    parser = argparse.ArgumentParser(description="Those whom billing calls.")
    parser.add_argument("--port", type=int, default=8010)
    parser.add_argument("--failing", type=float, default=0.0)
    parser.add_argument("--losing", type=float, default=0.0)
    parser.add_argument("--taking", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-keys", action="store_true")
    given = parser.parse_args()
    faults = Faults(given.failing, given.losing, given.seed)
    outside = Outside(given.port, faults=faults, with_keys=not given.no_keys, taking=given.taking)
    signal.signal(signal.SIGTERM, lambda *_signal: sys.exit(0))
    outside.answer_for_ever()


if __name__ == "__main__":
    main()
