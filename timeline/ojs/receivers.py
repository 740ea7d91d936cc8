"""What the package tells, and what follows from it here."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import router

from timeline.ojs.dead_letters import forget_pruned
from timeline.ojs.models import PutAway
from timeline.ojs.workflows import forget_ended


def on_pruning(*, using: str, ended_before: datetime, **_extra: Any) -> int:
    """Old rows were pruned: forget which dead letters among them were put away, and old workflows, where their tables are."""
    if not router.allow_migrate_model(using, PutAway):
        return 0
    return forget_pruned(using=using) + forget_ended(ended_before, using=using)
