"""Bulk actions as somebody asks for them."""

from __future__ import annotations

from typing import Any

from timeline.clocks import story_now
from timeline.models import BulkAction


def bulk_action(action: str, *, asker: Any, **columns: Any) -> BulkAction:
    """Make one that is not stored yet: ``bulk_action("cancel", asker=staff.pk, filters={"task": "account.call"})``."""
    columns.setdefault("filters", {"task": "account.call"})
    columns.setdefault("created_at", story_now("default"))
    return BulkAction(action=action, asker=str(asker), reason="all of them", actor="ada", **columns)
