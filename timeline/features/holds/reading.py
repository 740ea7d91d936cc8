"""Holds, as people read them."""

from __future__ import annotations

from collections.abc import Iterable

from django.utils.translation import gettext as _

from timeline.models import Hold, Then
from timeline.timing import told_time


def held_in_words(holds: Iterable[Hold]) -> str:
    """Say in a few words until when holds keep a task; empty: there are none."""
    ends = [hold.until for hold in holds]
    if not ends:
        return ""
    known = [at for at in ends if at is not None]
    if len(known) < len(ends):
        return _("held until somebody releases it")
    return _("held until %(at)s") % {"at": told_time(max(known))}


def told_hold(hold: Hold, *, people: bool = True) -> str:
    """Say what is on hold, from when to when, by whom and why, and what then. ``people``: tell who decided, and their texts."""
    told = {
        "what": hold.what,
        "since": told_time(hold.created_at),
        "until": told_time(hold.until) if hold.until else "",
        "actor": hold.actor,
    }
    if hold.lifted_at is not None:
        said = _("On hold since %(since)s (%(what)s); it is being released") % told
    elif hold.until is not None:
        said = _("On hold from %(since)s to %(until)s (%(what)s)") % told
    else:
        said = _("On hold since %(since)s, until somebody releases it (%(what)s)") % told
    if people and hold.actor:
        said = _("%(said)s, by %(actor)s") % {"said": said, "actor": hold.actor}
    why = ": " + hold.why.rstrip(".") if people or hold.is_by_brake else ""
    if hold.is_by_brake and hold.lifted_at is None:
        remedy = _("See what is due of it: cancel what must not run, then release it. All that is due by then runs.")
        return f"{said}{why}. {remedy}"
    return _("%(said)s. Then %(what)s.") % {"said": f"{said}{why}", "what": Then(hold.then).label}
