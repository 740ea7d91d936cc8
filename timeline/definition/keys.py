"""The key of a run, from the payload of the event that starts it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from timeline.exceptions import InvalidInput

MAX_KEY: Final = 100


def key_from(payload: Mapping[str, Any], fields: Sequence[str], *, timeline: str) -> str:
    """
    Make a key of some fields: ``42:3``. A colon within one of several values is written ``%3A``, and ``%`` then ``%25``.

    Args:
        payload: Of the event.
        fields: Names; each must be there, with text or a whole number.
        timeline: Its name, for the error.

    Raises:
        InvalidInput: naming the field and the timeline.
    """
    values = [_value(payload, name, timeline) for name in fields]
    if len(values) > 1:
        values = [value.replace("%", "%25").replace(":", "%3A") for value in values]
    key = ":".join(values)
    if len(key) > MAX_KEY:
        problem = _("makes a key of %(size)s characters for the timeline %(timeline)s.")
        remedy = _("Give shorter values of %(names)s: %(most)s characters at most.")
        said = {"size": len(key), "timeline": timeline, "names": ", ".join(fields), "most": MAX_KEY}
        raise InvalidInput("payload", problem, remedy, **said)
    return key


def _value(payload: Mapping[str, Any], name: str, timeline: str) -> str:
    value = payload.get(name)
    if value == "" or isinstance(value, bool) or not isinstance(value, str | int):
        problem = _("has %(value)s as %(name)s, by which the timeline %(timeline)s tells runs apart.")
        remedy = _("Give text or a whole number.")
        shown = repr(value)[:60] if name in payload else pgettext_lazy("timeline", "nothing")
        raise InvalidInput("payload", problem, remedy, value=shown, name=name, timeline=timeline)
    return str(value)
