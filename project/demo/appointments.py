"""The bookings lived: beside the trials people apply for appointments, and all do what is asked of them."""

from __future__ import annotations

from datetime import datetime
from time import monotonic
from typing import Final

from django.conf import settings
from django.urls import reverse
from rich.console import Console

from project.demo.applicants import Crowd, applicants
from project.portal.links import booking_token

EVERY: Final = 6.0  # Seconds: somebody applies.
LOOKED_AT: Final = 0.3  # Seconds: whether somebody is asked for something.


class Appointments:
    """
    Who applies, and who is waited for.

    Args:
        base: Address of the site.
        console: Where the first one is shown.
    """

    def __init__(self, base: str, console: Console) -> None:
        self.base, self.console = base, console
        self.to_come = applicants()
        self.crowd = Crowd(pace=settings.PORTAL_PACE)
        self.count = 0
        self._next_comes = self._next_look = monotonic()

    def act(self, at: datetime) -> None:
        """
        Let them do what they do.

        Args:
            at: Story time.
        """
        if monotonic() >= self._next_comes:
            self._next_comes = monotonic() + EVERY
            self.count += 1
            booking = next(self.to_come).apply(now=at, pace=settings.PORTAL_PACE)
            if self.count == 1:
                page, desk = reverse("booking", args=[booking_token(booking)]), reverse("booking-desk")
                self.console.print(
                    f"  {self.base}{page}  an appointment on a hostile portal\n"
                    f"  {self.base}{reverse('apply')}  apply yourself\n"
                    f"  {self.base}{desk}  what waits for an operator, with the same login",
                    highlight=False,
                    soft_wrap=True,
                )
        if monotonic() >= self._next_look:
            self._next_look = monotonic() + LOOKED_AT
            self.crowd.act(at)
