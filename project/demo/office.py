"""What the portal knows: whom it asks for a code, which appointments are taken, and what was booked; in memory."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, Final

OPENS, CLOSES = 6, 22  # Hours of the day, in Greenwich: it is under maintenance by night.
HELD_FOR: Final = timedelta(minutes=45)
DAYS_AHEAD, OPEN_FROM, OPEN_TO = 14, 8, 18
OFFERED: Final = 4
ASKED_AT_ONCE: Final = "passport-"  # Who is known by such a reference is asked for a code, whatever the chances.


@dataclass(frozen=True)
class Ways:
    """
    How hostile it is: shares of applicants, or of calls, from 0 to 1.

    Args:
        code: Asked for a code when they sign in.
        captcha: Asked whether somebody is there.
        documents, fee: Asked for in the form.
        confirm_code: Asked for a code when they book.
        full: Of searches that find nothing.
        gone: Of reservations that somebody else was quicker with.
        late: Of searches that find appointments in the evening only.
        strange: Of calls that are answered as nobody knows.
    """

    code: float = 0.4
    captcha: float = 0.06
    documents: float = 0.15
    fee: float = 0.2
    confirm_code: float = 0.2
    full: float = 0.15
    gone: float = 0.08
    late: float = 0.15
    strange: float = 0.004


FRIENDLY: Final = Ways(*[0.0] * 9)


@dataclass
class Account:
    """What it knows of one applicant."""

    code: str = ""
    code_is_for: str = ""
    is_human: bool = False
    is_sure: bool = False  # The code for booking was right.
    holds: dict[str, tuple[str, datetime]] = field(default_factory=dict)  # Reservation → slot, until.
    booked: str = ""
    bookings: int = 0


class Office:
    """
    The portal's books.

    Args:
        ways: How hostile it is.
        seed: The same makes the same applicants.
        now: Story time.
        by_night: Whether it is closed by night.
        pace: How much longer than in earnest it keeps a reservation.
    """

    def __init__(
        self, ways: Ways, *, seed: int, now: Callable[[], datetime], by_night: bool = True, pace: int = 1
    ) -> None:
        self.held_for = HELD_FOR * pace
        self.ways, self.seed, self.now, self.by_night = ways, seed, now, by_night
        self.counts = Counter[str]()
        self._accounts: dict[str, Account] = {}
        self._holders: dict[str, str] = {}  # Reservation → whose.
        self._taken: dict[str, tuple[str, datetime | None]] = {}  # Slot → whose, until when; None: booked.
        self._lock = Lock()

    def chance(self, share: float, *of: object) -> bool:
        """Say whether it befalls; the same for the same."""
        return self._random(*of).random() < share

    def _random(self, *of: object) -> random.Random:
        return random.Random(" ".join(map(str, (self.seed, *of))))  # noqa: S311 (chances of a demonstration)

    def status(self) -> dict[str, Any]:
        """Say whether it is open, and else until when it is not."""
        at = self.now()
        opens = at.replace(hour=OPENS, minute=0, second=0, microsecond=0)
        if not self.by_night or OPENS <= at.hour < CLOSES:
            return {"open": True, "opens_at": at.isoformat()}
        return {"open": False, "opens_at": (opens if at < opens else opens + timedelta(days=1)).isoformat()}

    def sign_in(self, reference: str, password: str) -> tuple[int, dict[str, Any]]:
        """Let an applicant in, or ask for more."""
        with self._lock:
            account = self._account(reference)
            if not self.status()["open"]:
                return 503, {}
            if not password or password.startswith("old"):
                return 401, {}
            at_once = reference.startswith(ASKED_AT_ONCE)
            if not at_once and self.chance(self.ways.captcha, "captcha", reference) and not account.is_human:
                return 403, {}
            if at_once or self.chance(self.ways.code, "code", reference):
                self._send_code(account, reference, "signing in")
                return 200, {"code": True}
            return 200, {"code": False}

    def see_human(self, reference: str) -> None:
        """Somebody has solved the riddle."""
        with self._lock:
            self._account(reference).is_human = True

    def code_of(self, reference: str) -> str:
        """Give the code that was sent last; empty: none was."""
        with self._lock:
            return self._account(reference).code

    def take_code(self, reference: str, code: str) -> dict[str, Any]:
        """Say whether a code is right. Given again, it is right again: the answer may have been lost."""
        with self._lock:
            account = self._account(reference)
            right = bool(account.code) and code == account.code
            account.is_sure = account.is_sure or (right and account.code_is_for == "booking")
            return {"right": right}

    def slots(self, reference: str) -> dict[str, Any]:
        """Offer what is free, each applicant something else first."""
        with self._lock:
            self.counts["searches"] += 1
            chances = self._random("slots", reference, self.counts["searches"])
            if chances.random() < self.ways.full:
                return {"slots": []}
            hours = (OPEN_TO, OPEN_TO + 2) if chances.random() < self.ways.late else (OPEN_FROM, OPEN_TO)
            day = self.now().replace(hour=0, minute=0, second=0, microsecond=0)
            offered = [
                day + timedelta(days=chances.randint(1, DAYS_AHEAD), hours=chances.randrange(*hours), minutes=minutes)
                for minutes in chances.choices(range(0, 60, 10), k=OFFERED)
            ]
            return {
                "slots": [slot.isoformat() for slot in sorted(offered) if self._is_free(slot.isoformat(), reference)]
            }

    def hold(self, reference: str, slot: str) -> tuple[int, dict[str, Any]]:
        """Reserve a slot for a while."""
        with self._lock:
            account = self._account(reference)
            known = [hold for hold, (held, until) in account.holds.items() if held == slot and until > self.now()]
            if known:
                return 200, {"hold": known[0]}
            self.counts["holds"] += 1
            if not self._is_free(slot, reference) or self.chance(self.ways.gone, "gone", self.counts["holds"]):
                return 409, {}
            hold, until = f"{reference}-{self.counts['holds']}", self.now() + self.held_for
            account.holds[hold] = slot, until
            self._holders[hold] = reference
            self._taken[slot] = reference, until
            return 200, {"hold": hold}

    def take_form(self, form: dict[str, Any]) -> dict[str, Any]:
        """Take a page of the form, and say what it needs besides."""
        with self._lock:
            reference = self._holders.get(form["hold"], "")
            if self.chance(self.ways.documents, "documents", reference) and not form["documents"]:
                return {"needs": "documents"}
            if self.chance(self.ways.fee, "fee", reference) and not form["paid"]:
                return {"needs": "fee"}
            return {"needs": ""}

    def confirm(self, reference: str, hold: str) -> dict[str, Any]:
        """Book what is reserved. What was booked already is not booked again, whatever is asked."""
        with self._lock:
            account = self._account(reference)
            slot, until = account.holds.get(hold, ("", self.now()))
            if account.booked or until <= self.now():
                return {"code": False, "held": False}
            if self.chance(self.ways.confirm_code, "confirm", reference) and not account.is_sure:
                self._send_code(account, reference, "booking")
                return {"code": True, "held": True}
            account.booked, account.bookings = slot, account.bookings + 1
            account.holds.clear()
            self._taken[slot] = reference, None
            return {"code": False, "held": True}

    def appointment(self, reference: str) -> dict[str, Any]:
        """Say what is booked."""
        with self._lock:
            return {"slot": self._account(reference).booked}

    def give_back(self, reference: str) -> dict[str, Any]:
        """Take back what is reserved or booked."""
        with self._lock:
            account = self._account(reference)
            account.booked = ""
            account.holds.clear()
            for slot in [slot for slot, (whose, _until) in self._taken.items() if whose == reference]:
                del self._taken[slot]
            return {}

    def told(self) -> dict[str, Any]:
        """Say what there is: who has an appointment, how many had two, and what went wrong."""
        with self._lock:
            return {
                "booked": {name: account.booked for name, account in self._accounts.items() if account.booked},
                "booked_twice": sum(account.bookings > 1 for account in self._accounts.values()),
                **{name: self.counts[name] for name in ("calls", "failed", "lost", "busy", "strange")},
            }

    def count(self, what: str) -> int:
        """Count something, and give how often it was."""
        with self._lock:
            self.counts[what] += 1
            return self.counts[what]

    def _account(self, reference: str) -> Account:
        return self._accounts.setdefault(reference, Account())

    def _send_code(self, account: Account, reference: str, code_is_for: str) -> None:
        account.code, account.code_is_for = f"{self._random(code_is_for, reference).randrange(10**6):06d}", code_is_for

    def _is_free(self, slot: str, reference: str) -> bool:
        whose, until = self._taken.get(slot, ("", None))
        return whose in ("", reference) or (until is not None and until <= self.now())
