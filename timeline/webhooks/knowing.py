"""
Whether there is any endpoint: remembered, so that who has none pays for no statement.

A process may not know for ``LOOK_AGAIN`` that another one has made the first. That it was disabled or deleted is seen at once,
by the statement that writes deliveries.
"""

from __future__ import annotations

from time import monotonic
from typing import NamedTuple

from timeline.webhooks.conf import get_settings
from timeline.webhooks.models import Endpoint


class _Known(NamedTuple):
    any: bool
    of_tasks: bool
    until: float


_known: dict[str, _Known] = {}


def is_any(*, using: str, of_tasks: bool = False) -> bool:
    """
    Whether there is an endpoint that is enabled.

    Args:
        using: Database alias.
        of_tasks: One that wants to be told of tasks.
    """
    known = _known.get(using)
    if known is None or monotonic() >= known.until:
        known = _known[using] = _ask(using)
    return known.of_tasks if of_tasks else known.any


def forget(using: str) -> None:
    """Ask anew the next time."""
    _known.pop(using, None)


def assume_none(using: str) -> None:
    """Take it that there is none, as a process does that has asked. For tests that count statements."""
    _known[using] = _Known(False, False, float("inf"))


def _ask(using: str) -> _Known:
    wanted = list(Endpoint.objects.using(using).filter(disabled_at=None).values_list("topics", flat=True))
    of_tasks = any(topic.startswith("task.") for topics in wanted for topic in topics)
    return _Known(bool(wanted), of_tasks, monotonic() + get_settings().LOOK_AGAIN.total_seconds())
