"""``EventFields``: what an event says, whosever it is."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, NamedTuple

ERASED: Final = "timeline.erased"
"""Name of the event that says who erased, when and why. ``erase`` writes it, and nobody emits it: it is never blanked."""


class EventFields(NamedTuple):
    """What an event says, whosever it is; its fields are columns."""

    name: str
    key: str
    payload: dict[str, Any]
    actor: str
    occurred_at: datetime
    recorded_at: datetime
