"""
Whether there is any endpoint: remembered, so that who has none pays for no statement.

A process may not know for ``LOOK_AGAIN`` that another one has made the first. That it was disabled or deleted is seen at once,
by the statement that writes deliveries. What a transaction sees that has changed endpoints itself is not remembered: it may be
rolled back.
"""

from __future__ import annotations

from time import monotonic
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from django.db import connections, router

from timeline.webhooks.conf import get_settings
from timeline.webhooks.models import Endpoint


class _Known(NamedTuple):
    any: bool
    of_tasks: bool
    until: float


_known: dict[str, _Known] = {}
_changing: WeakKeyDictionary[Any, Any] = (
    WeakKeyDictionary()
)  # Connection → the outermost block that has changed endpoints.


def is_any(*, using: str, of_tasks: bool = False) -> bool:
    """
    Whether there is an endpoint that is enabled.

    Args:
        using: Database alias.
        of_tasks: One that wants to be told of tasks.
    """
    if _is_changing(using):
        known = _ask(using)
    elif (found := _known.get(using)) is not None and monotonic() < found.until:
        known = found
    else:
        known = _known[using] = _ask(using)
    return known.of_tasks if of_tasks else known.any


def forget(using: str) -> None:
    """Ask anew the next time; in a transaction, each time until it has ended."""
    _known.pop(using, None)
    if (block := _outermost(using)) is not None:
        _changing[connections[using]] = block


def assume_none(using: str) -> None:
    """Take it that there is none, as a process does that has asked. For tests that count statements."""
    _known[using] = _Known(False, False, float("inf"))


def _is_changing(using: str) -> bool:
    changed = _changing.get(connections[using])
    if changed is not None and changed is not _outermost(using):
        del _changing[connections[using]]
        return False
    return changed is not None


def _outermost(using: str) -> Any:
    """The block that the open transaction ends with, but for that of a test; None: there is none."""
    connection: Any = connections[using]
    return next((block for block in connection.atomic_blocks if not block._from_testcase), None)


def _ask(using: str) -> _Known:
    if not router.allow_migrate_model(using, Endpoint):  # A database of the host's that has no such table.
        return _Known(False, False, float("inf"))
    wanted = list(Endpoint.objects.using(using).filter(disabled_at=None).values_list("topics", flat=True))
    of_tasks = any(topic.startswith("task.") for topics in wanted for topic in topics)
    return _Known(bool(wanted), of_tasks, monotonic() + get_settings().LOOK_AGAIN.total_seconds())
