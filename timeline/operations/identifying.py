"""Identify: is this database ours to work on? A copy of another site's must not mail that site's customers."""

from __future__ import annotations

from datetime import datetime

from django.db import connections

from timeline.clocks import MachineTime
from timeline.conf import get_settings
from timeline.exceptions import NoAutocommit, WrongSite
from timeline.models import Identity
from timeline.models.identity import THE_ONE
from timeline.store.probing import Signed, sign


def stamp(*, now: datetime, using: str) -> None:
    """Give a new database the site of the settings; one that has a site keeps it."""
    Identity.objects.using(using).get_or_create(pk=THE_ONE, defaults={"site": get_settings().SITE, "adopted_at": now})


def confirm_site(*, using: str) -> None:
    """
    See that the database is of ``TIMELINE["SITE"]``, and keeps what is written. A database that
    has no row of its site belongs to none.

    Raises:
        NoAutocommit: if its connection commits nothing by itself.
        WrongSite: if it is another site's; nothing of it may be run here.
    """
    _confirm(using)


def sign_of_poller(*, using: str) -> Signed:
    """
    See the same before a poll, and leave a sign of it: when it was, to a poll interval.

    Returns:
        What was found: also whether there are holds that may have to be released, and bulk actions to go on with.

    Raises:
        NoAutocommit, WrongSite: as for ``confirm_site``.
    """
    found = _confirm(using)
    if found.is_due:
        Identity.objects.using(using).filter(pk=THE_ONE).update(polled_at=MachineTime())
    return found


def _confirm(using: str) -> Signed:
    """See that it is ours; say whether a sign of a poller is due, and what else polls have to see to."""
    if not _commits(using):
        raise NoAutocommit(using)
    ours = get_settings()
    found = sign(ours.POLL_INTERVAL, using=using)
    if found.site != ours.SITE:
        raise WrongSite(ours.SITE, found.site, using)
    return found


def _commits(using: str) -> bool:
    """Whether autocommit is on, by the settings and, outside of a transaction, on the open connection."""
    connection = connections[using]
    is_bare = connection.connection is not None and not connection.in_atomic_block
    return bool(connection.settings_dict["AUTOCOMMIT"]) and (connection.autocommit or not is_bare)
