"""``EventFields``: the contents of an event, without its entity."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from django.utils.translation import gettext_lazy as _

from timeline.definition.tables import ERASED
from timeline.exceptions import InvalidInput


class EventFields(NamedTuple):
    """The contents of an event, without its entity; the fields are columns."""

    name: str
    key: str
    payload: dict[str, Any]
    actor: str
    occurred_at: datetime
    recorded_at: datetime


def refuse_ours(name: str, *, field: str) -> None:
    """
    Refuse the name of an event that only this package may write: such events are kept when the data about an entity is erased.

    Raises:
        InvalidInput: naming the field.
    """
    if name == ERASED:
        raise InvalidInput(field, _("%(name)r is written where something is erased."), _("Call erase."), name=name)
