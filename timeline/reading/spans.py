"""How far a moment is from now, in words."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils.timesince import timesince, timeuntil
from django.utils.translation import gettext as _


def from_now(at: datetime, now: datetime) -> str:
    """Say how far a moment is: "in 4 minutes", "3 days ago"."""
    if abs(at - now) < timedelta(minutes=1):
        return _("in less than a minute") if at > now else _("just now")
    if at > now:
        return _("in %(span)s") % {"span": timeuntil(at, now)}
    return _("%(span)s ago") % {"span": timesince(at, now)}
