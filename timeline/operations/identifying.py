"""Identify: is this database ours to work on? A copy of another site's must not mail that site's customers."""

from __future__ import annotations

from datetime import datetime

from timeline.clocks import MachineTime
from timeline.conf import get_settings
from timeline.exceptions import WrongSite
from timeline.models import Identity
from timeline.models.identity import THE_ONE
from timeline.models.probing import sign


def stamp(*, now: datetime, using: str) -> None:
    """Give a new database the site of the settings; one that has a site keeps it."""
    Identity.objects.using(using).get_or_create(pk=THE_ONE, defaults={"site": get_settings().SITE, "adopted_at": now})


def confirm_site(*, using: str) -> None:
    """
    See that the database is of ``TIMELINE["SITE"]``. A database without its row is of none.

    Raises:
        WrongSite: if it is another site's; nothing of it may be run here.
    """
    _confirm(using)


def sign_of_poller(*, using: str) -> None:
    """
    See the same before a poll, and leave a sign of it: when it was, to a poll interval.

    Raises:
        WrongSite: as for ``confirm_site``.
    """
    if _confirm(using):
        Identity.objects.using(using).filter(pk=THE_ONE).update(polled_at=MachineTime())


def _confirm(using: str) -> bool:
    """See that it is ours; say whether a sign of a poller is due."""
    ours = get_settings()
    theirs, is_due = sign(ours.POLL_INTERVAL, using=using)
    if theirs != ours.SITE:
        raise WrongSite(ours.SITE, theirs, using)
    return is_due
