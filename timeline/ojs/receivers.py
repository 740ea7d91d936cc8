"""What the package tells, and what follows from it here."""

from __future__ import annotations

from typing import Any

from django.db import router

from timeline.ojs.dead_letters import forget_pruned
from timeline.ojs.models import PutAway


def on_pruning(*, using: str, **_extra: Any) -> int:
    """Old rows were pruned: forget which dead letters among them were put away, where their table is."""
    return forget_pruned(using=using) if router.allow_migrate_model(using, PutAway) else 0
