"""Checks of limits: who waits for a place is given one by code that knows the limit, and by no other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.apps import AppConfig
from django.core.checks import CheckMessage, Warning
from django.db.models import Count

from timeline.checks.database import are_made
from timeline.features.limits.places import limited_keys
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.registry import registry

MOST_NAMED: Final = 5


def check_limits(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **_extra: Any
) -> list[CheckMessage]:
    """``timeline.W012``: rows that wait for a place of a limit that their tasks do not declare; nothing else tells of them."""
    return [message for alias in databases or () for message in _of_database(alias)]


def _of_database(alias: str) -> list[CheckMessage]:
    unlimited = sorted(set(registry.task_keys()) - set(limited_keys()))
    if not unlimited or not are_made(alias, ScheduledTask):
        return []
    waiting = ScheduledTask.objects.using(alias).filter(state=State.AVAILABLE, limit_key__gt="", task_key__in=unlimited)
    counts = dict(waiting.order_by().values_list("task_key").annotate(Count("pk")))
    if not counts:
        return []
    first = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    named = ", ".join(f"{key} ({count})" for key, count in first[:MOST_NAMED])
    more = f" and {len(first) - MOST_NAMED} more" if len(first) > MOST_NAMED else ""
    message = (
        f"Nothing runs these rows of the database {alias!r}, as their tasks declare no limit any more: {named}{more}."
    )
    hint = "Declare the limit again until none of them is open; limit=1000 holds up nobody."
    return [Warning(message, hint=hint, id="timeline.W012")]


CHECKS: Final = (check_limits,)
