"""
Write alerts: tasks of the timeline ``alerts``, one in an hour for failures that are alike, in the transaction of what happens.
The insert takes no lock but that of its unique key, as a caller holds enough already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from timeline.conf import get_settings
from timeline.exceptions import UnknownTask
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.payloads import clip
from timeline.registry import registry
from timeline.signals import Trouble, alerted
from timeline.store.new_rows import create_missing, options_of

TELL: Final = "alerts.tell"
MAX_ABOUT: Final = 60  # Characters of what it is about, for people. If two begin alike, the group tells them apart.
MAX_TEXT: Final = 500


def is_anybody_told() -> bool:
    """Whether there is anybody to tell: addresses, or receivers of ``alerted``."""
    return bool(get_settings().alert_addresses) or alerted.has_listeners()


def alert_discards(tasks: Sequence[ScheduledTask], *, now: datetime, using: str) -> list[ScheduledTask]:
    """Write and return alerts for discarded tasks; none for alerts themselves, nor for failures that had one this hour."""
    told: dict[str, dict[str, Any]] = {}
    for task in tasks:
        if task.task_key != TELL:
            payload = {"kind": "discarded", "about": task.task_key, "group": task.fingerprint, "task": str(task.pk)}
            told.setdefault(_occurrence(task.task_key, task.fingerprint, now), payload)
    return _write(told, now=now, using=using) if told else []


def alert_missed(texts: Mapping[str, str], *, now: datetime, using: str) -> list[ScheduledTask]:
    """
    Write and return alerts for passed-over slots: timeline → which, and why (500 characters are kept). One in an hour each.
    """
    told = {
        _occurrence(timeline, "missed", now): {
            "kind": "missed",
            "about": timeline,
            "group": "",
            "text": clip(text, MAX_TEXT),
        }
        for timeline, text in texts.items()
    }
    return _write(told, now=now, using=using) if told else []


def alert_unpolled(text: str, *, now: datetime, using: str) -> ScheduledTask | None:
    """
    Write an alert that nobody polls, at most one an hour. Gives that of this hour, new or not; None: there is nobody to tell.
    """
    occurrence = _occurrence(using, "unpolled", now)
    _write({occurrence: {"kind": "unpolled", "about": using, "group": "", "text": text}}, now=now, using=using)
    rows = ScheduledTask.objects.using(using).filter(task_key=TELL, entity_label="", entity_id="")
    return rows.filter(run__isnull=True, occurrence=occurrence).order_by("revision").last()


def alert_trouble(trouble: Trouble, *, now: datetime, using: str) -> None:
    """Write an alert for a problem that concerns no task, at most one an hour. 500 characters of its text are kept."""
    payload = {"kind": trouble.kind, "about": using, "group": "", "text": clip(trouble.text, MAX_TEXT)}
    _write({_occurrence(using, trouble.kind, now): payload}, now=now, using=using)


def alert_disabled(about: str, text: str, *, now: datetime, using: str) -> None:
    """Write an alert that the endpoint of webhooks ``about`` was disabled; 500 characters of the text are kept."""
    payload = {"kind": "disabled", "about": about, "group": "", "text": clip(text, MAX_TEXT)}
    _write({_occurrence(about, "disabled", now): payload}, now=now, using=using)


def alert_once(kind: str, about: str, each: UUID, text: str, *, now: datetime, using: str, **told: str) -> None:
    """Write an alert, in the same transaction: one for ``each`` thing of a kind. ``told``: what else it is told with."""
    payload = {"kind": kind, "about": about, "group": "", **told, "text": text}
    _write({_occurrence(about, each.hex[-16:], now): payload}, now=now, using=using)


def _occurrence(about: str, group: str, now: datetime) -> str:
    """The occurrence of an alert, by which alerts differ: what it is about, the group, and the hour."""
    return f"{about[:MAX_ABOUT]}:{group}:{now.astimezone(UTC):%Y-%m-%dT%H}"


def _write(told: Mapping[str, Mapping[str, Any]], *, now: datetime, using: str) -> list[ScheduledTask]:
    """Insert alerts in order of their occurrences. So two transactions that insert the same alerts cannot deadlock."""
    if not is_anybody_told():
        return []
    try:
        options = options_of(registry.task(TELL)[1])
    except UnknownTask:
        return []  # A test has removed all timelines but its own, so that nothing could tell people.
    rows = [
        ScheduledTask(
            task_key=TELL,
            occurrence=occurrence,
            payload=dict(told[occurrence]),
            state=State.AVAILABLE,
            nominal_at=now,
            scheduled_at=now,
            created_at=now,
            **options,
        )
        for occurrence in sorted(told)
    ]
    return create_missing(rows, using=using)
