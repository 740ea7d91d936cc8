"""``EventFields``: what an event says, whosever it is."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from django.utils.translation import gettext_lazy as _

from timeline.definition.tables import ERASED
from timeline.exceptions import InvalidInput


class EventFields(NamedTuple):
    """What an event says, whosever it is; its fields are columns."""

    name: str
    key: str
    payload: dict[str, Any]
    actor: str
    occurred_at: datetime
    recorded_at: datetime


def refuse_ours(name: str, *, field: str) -> None:
    """
    See that an event is none that only this package writes: those stay when what is about somebody is blanked.

    Raises:
        InvalidInput: naming the field.
    """
    if name == ERASED:
        raise InvalidInput(field, _("%(name)r is written where something is erased."), _("Call erase."), name=name)
