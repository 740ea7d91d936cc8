"""
Alert: write down that people are to be told, in the transaction in which it becomes true.

An alert is a task of the timeline ``alerts``, one for an hour and for what failed alike. It is about no entity and is inserted
without any lock but that of its place: whoever discards a task holds locks enough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from timeline.conf import get_settings
from timeline.exceptions import UnknownTask
from timeline.lifecycle import State
from timeline.models import Hold, ScheduledTask
from timeline.payloads import clip
from timeline.registry import registry
from timeline.signals import Trouble, alerted
from timeline.store.creating import create_missing, options_of

TELL: Final = "alerts.tell"
MAX_ABOUT: Final = 60  # Characters of what it is about, for people: the group tells those apart that begin alike.
MAX_TEXT: Final = 500


def is_anybody_told() -> bool:
    """Whether there is anybody to tell: addresses, or who listens to ``alerted``."""
    return bool(get_settings().alert_addresses) or alerted.has_listeners()


def alert_discards(tasks: Sequence[ScheduledTask], *, now: datetime, using: str) -> list[ScheduledTask]:
    """
    Have people told of tasks that have just been discarded, in the transaction that discarded them; of alerts themselves not.

    Returns:
        The alerts written; of what failed alike, there may be one of this hour.
    """
    told: dict[str, dict[str, Any]] = {}
    for task in tasks:
        if task.task_key != TELL:
            payload = {"kind": "discarded", "about": task.task_key, "group": task.fingerprint, "task": str(task.pk)}
            told.setdefault(_occurrence(task.task_key, task.fingerprint, now), payload)
    return _write(told, now=now, using=using) if told else []


def alert_missed(texts: Mapping[str, str], *, now: datetime, using: str) -> list[ScheduledTask]:
    """
    Have people told that times of schedules were passed over, in the transaction that passes over them.

    Args:
        texts: Name of a timeline → which times, and why; 500 characters are kept.
        now: Story time.
        using: Database alias.

    Returns:
        The alerts; none of a timeline that had one this hour.
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
    Have people told that nobody polls the database.

    Returns:
        The alert of this hour, also one that is there already; None: there is nobody to tell.
    """
    occurrence = _occurrence(using, "unpolled", now)
    _write({occurrence: {"kind": "unpolled", "about": using, "group": "", "text": text}}, now=now, using=using)
    rows = ScheduledTask.objects.using(using).filter(task_key=TELL, entity_label="", entity_id="")
    return rows.filter(run__isnull=True, occurrence=occurrence).order_by("revision").last()


def alert_trouble(trouble: Trouble, *, now: datetime, using: str) -> None:
    """
    Have people told of what is wrong beside tasks; nobody, if they were told of it this hour.

    Args:
        trouble: Of its text, 500 characters are kept.
        now: Story time.
        using: Database alias.
    """
    payload = {"kind": trouble.kind, "about": using, "group": "", "text": clip(trouble.text, MAX_TEXT)}
    _write({_occurrence(using, trouble.kind, now): payload}, now=now, using=using)


def alert_disabled(about: str, text: str, *, now: datetime, using: str) -> None:
    """
    Have people told that nothing is sent to an endpoint of webhooks any more, in the transaction that disables it.

    Args:
        about: Which one, for people.
        text: Why; 500 characters are kept.
        now: Story time.
        using: Database alias.
    """
    payload = {"kind": "disabled", "about": about, "group": "", "text": clip(text, MAX_TEXT)}
    _write({_occurrence(about, "disabled", now): payload}, now=now, using=using)


def alert_parked(hold: Hold, *, now: datetime, using: str) -> None:
    """Have people told that the brake of a destructive task has put it on hold, in the transaction that does so; of each."""
    payload = {"kind": "parked", "about": hold.target, "group": "", "hold": str(hold.pk), "text": hold.why}
    _write({_occurrence(hold.target, hold.pk.hex[-16:], now): payload}, now=now, using=using)


def _occurrence(about: str, group: str, now: datetime) -> str:
    """What tells alerts apart: what they are about, the group, and the hour."""
    return f"{about[:MAX_ABOUT]}:{group}:{now.astimezone(UTC):%Y-%m-%dT%H}"


def _write(told: Mapping[str, Mapping[str, Any]], *, now: datetime, using: str) -> list[ScheduledTask]:
    """Insert them in order of their places: two who do so wait for each other in turn, and never both."""
    if not is_anybody_told():
        return []
    try:
        options = options_of(registry.task(TELL)[1])
    except UnknownTask:
        return []  # A test has put all timelines but its own away: nobody here could tell.
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
