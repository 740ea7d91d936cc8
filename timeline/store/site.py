"""Whose a database is: checked before work, so that a copy of it runs nothing twice."""

from __future__ import annotations

from datetime import datetime

from django.db import connections

from timeline.clocks import MachineTime
from timeline.conf import get_settings
from timeline.exceptions import NoAutocommit, WrongSite
from timeline.models import Identity
from timeline.models.upkeep import THE_ONE
from timeline.store.poll_queries import Signed, sign


def stamp(*, now: datetime, using: str) -> None:
    """Give a new database the site of the settings; one that has a site keeps it."""
    Identity.objects.using(using).get_or_create(pk=THE_ONE, defaults={"site": get_settings().SITE, "adopted_at": now})


def confirm_site(*, using: str) -> None:
    """
    Check that the database belongs to ``TIMELINE["SITE"]``, or to no site as it has no row for it.

    Raises:
        NoAutocommit: if its connection commits nothing by itself.
        WrongSite: if it belongs to another site; nothing of it may be run here.
    """
    _confirm(using)


def sign_of_poller(*, using: str) -> Signed:
    """As ``confirm_site``; writes down the time of the poll, about once in an interval. Tells of holds and bulk actions."""
    found = _confirm(using)
    if found.is_due:
        Identity.objects.using(using).filter(pk=THE_ONE).update(polled_at=MachineTime())
    return found


def _confirm(using: str) -> Signed:
    """Check that the database is ours. Tells whether the time of a poll has to be written, and what polls have to do."""
    if not _commits(using):
        raise NoAutocommit(using)
    ours = get_settings()
    found = sign(ours.POLL_INTERVAL, using=using)
    if found.site != ours.SITE:
        raise WrongSite(ours.SITE, found.site, using)
    return found


def _commits(using: str) -> bool:
    """Whether autocommit is on: in the settings, and on an open connection that is not in a transaction."""
    connection = connections[using]
    is_bare = connection.connection is not None and not connection.in_atomic_block
    return bool(connection.settings_dict["AUTOCOMMIT"]) and (connection.autocommit or not is_bare)
