"""
The portal on which appointments are booked, as a small server on loopback. It is slow, closed by night, and now and then
does not answer. It asks for codes, which anybody may read at ``/inbox/<reference>``, and whether somebody is there, at
``/captcha/<reference>``.

``python -m project.demo.portal --port 8011 --failing 0.05 --losing 0.02``. ``GET /books`` says what it has done.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from typing import Any, Final
from urllib.parse import unquote

if __name__ == "__main__":  # As a process it needs nothing of the site.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from project.demo.clock import now as story_now
from project.demo.faults import Faults
from project.demo.office import Office, Ways
from project.demo.serving import Answering, Call

_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title></head><body><h1>{title}</h1>{body}</body></html>"""


class Portal(Answering):
    """
    The server.

    Args:
        port: On loopback; 0: a free one.
        office: What it knows.
        faults: Which calls fail, and of which the answers are lost.
        slow: Seconds that it takes to sign in; all else takes a fifth.
        most_a_second: So many calls are answered within a second; the others are asked to come later. 0: all are.
    """

    def __init__(
        self, port: int = 0, *, office: Office, faults: Faults | None = None, slow: float = 0, most_a_second: int = 0
    ) -> None:
        super().__init__(port, _Calls)
        self.office = office
        self.faults = faults or Faults()
        self.slow = slow
        self.most_a_second = most_a_second
        self._recent = deque[float](maxlen=max(most_a_second, 1))
        self._lock = Lock()

    def is_too_much(self) -> bool:
        """Whether this call is one too many."""
        if not self.most_a_second:
            return False
        with self._lock:
            at = monotonic()
            if len(self._recent) == self.most_a_second and at - self._recent[0] < 1:
                return True
            self._recent.append(at)
            return False


class _Calls(Call):
    """One call."""

    server: Portal

    def do_GET(self) -> None:
        """Show a page for people, say what was done, or answer a question."""
        place, reference = self._asked()
        if place == "books":
            self.answer(200, self.server.office.told())
        elif place == "inbox":
            code = self.server.office.code_of(reference)
            self._show("Your code", f"<p><strong id='code'>{code}</strong></p>" if code else "<p>No code yet.</p>")
        elif place == "captcha":
            form = f"<form method='post' action='/captcha/{escape(reference)}'><button>I am no robot</button></form>"
            self._show("Are you there?", form)
        else:
            questions: dict[str, Callable[[], tuple[int, dict[str, Any]]]] = {
                "status": lambda: (200, self.server.office.status()),
                "slots": lambda: (200, self.server.office.slots(reference)),
                "appointments": lambda: (200, self.server.office.appointment(reference)),
            }
            self._do(place, questions.get(place))

    def do_POST(self) -> None:
        """Do what is asked for, unless that goes wrong."""
        place, reference = self._asked()
        body = self.read()
        office = self.server.office
        if place == "captcha":
            office.see_human(reference)
            self._show("Thank you", "<p>Now we know that you are there.</p>")
            return
        deeds: dict[str, Callable[[], tuple[int, dict[str, Any]]]] = {
            "login": lambda: office.sign_in(body["reference"], body["password"]),
            "code": lambda: (200, office.take_code(body["reference"], body["code"])),
            "holds": lambda: office.hold(body["reference"], body["slot"]),
            "forms": lambda: (200, office.take_form(body)),
            "confirm": lambda: (200, office.confirm(body["reference"], body["hold"])),
        }
        self._do(place, deeds.get(place))

    def do_DELETE(self) -> None:
        """Take back what an applicant has."""
        place, reference = self._asked()
        self._do(place, (lambda: (200, self.server.office.give_back(reference))) if place == "appointments" else None)

    def _do(self, place: str, deed: Callable[[], tuple[int, dict[str, Any]]] | None) -> None:
        """Do it, or not; answer, or not."""
        office, server = self.server.office, self.server
        if deed is None:
            self.answer(404, {})
            return
        sleep(server.slow if place == "login" else server.slow / 5)
        number = office.count("calls")
        if server.is_too_much():
            office.count("busy")
            self.answer(429, {})
            return
        if office.chance(office.ways.strange, "strange", number):
            office.count("strange")
            self.answer(418, {})
            return
        fault = server.faults.of(place)
        if fault == "refused":
            office.count("failed")
            self.answer(502, {})
            return
        status, said = deed()
        if fault == "lost":
            office.count("lost")
            self.close_connection = True
            return
        self.answer(status, said)

    def _asked(self) -> tuple[str, str]:
        place, _slash, reference = self.path.partition("?")[0].strip("/").partition("/")
        return place, unquote(reference)

    def _show(self, title: str, body: str) -> None:
        self.send(200, "text/html; charset=utf-8", _PAGE.format(title=title, body=body).encode())


def main() -> None:
    """Answer until SIGTERM or Ctrl-C."""
    parser = argparse.ArgumentParser(description="The portal on which appointments are booked.")
    parser.add_argument("--port", type=int, default=8011)
    parser.add_argument("--failing", type=float, default=0.0)
    parser.add_argument("--losing", type=float, default=0.0)
    parser.add_argument("--slow", type=float, default=0.0)
    parser.add_argument("--most-a-second", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ways", type=json.loads, default={}, help="Shares of applicants and calls, as JSON.")
    parser.add_argument("--pace", type=int, default=1, help="How much longer than in earnest it keeps a reservation.")
    parser.add_argument("--by-day-only", action="store_true", help="Be under maintenance by night, in story time.")
    given = parser.parse_args()
    now: Callable[[], datetime] = story_now if given.by_day_only else lambda: datetime.now(UTC)
    office = Office(Ways(**given.ways), seed=given.seed, now=now, by_night=given.by_day_only, pace=given.pace)
    faults = Faults(given.failing, given.losing, given.seed)
    portal = Portal(given.port, office=office, faults=faults, slow=given.slow, most_a_second=given.most_a_second)
    signal.signal(signal.SIGTERM, lambda *_signal: sys.exit(0))
    portal.answer_for_ever()


if __name__ == "__main__":
    main()
