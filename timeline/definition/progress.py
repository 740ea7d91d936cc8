"""What ``self.progress(…)`` is given, checked, and who is told."""

from __future__ import annotations

from typing import Final, Protocol

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from timeline.exceptions import InvalidInput
from timeline.payloads import check_text

MAX_NOTE: Final = 200
MAX_COUNT: Final = 2**63 - 1


class Teller(Protocol):
    """Tells people how far the handler of one attempt is."""

    def tell(self, done: int, total: int | None, note: str) -> None:
        """Record it, unless that was done a moment ago."""

    async def atell(self, done: int, total: int | None, note: str) -> None:
        """The same, for a handler declared with ``async def``."""


def check_progress(done: object, total: object, note: object) -> None:
    """
    Refuse what is no progress.

    Raises:
        InvalidInput: naming ``done``, ``total`` or ``note``.
    """
    for name, number in (("done", done), ("total", total)):
        if name == "total" and number is None:
            continue
        if type(number) is not int or not 0 <= number <= MAX_COUNT:
            problem, remedy = _("is %(number)s."), _("Give a whole number, 0 or more.")
            raise InvalidInput(name, problem, remedy, number=f"{number!a:.60}")
    check_text("note", str(note) if isinstance(note, Promise) else note, MAX_NOTE)
