"""Masking: a task and its log without what only some may read: payload, result and errors; who decided, and what they wrote."""

from __future__ import annotations

from copy import copy

from timeline.exceptions import UnknownTimeline
from timeline.lifecycle import ReasonCode
from timeline.models import LogEntry, ScheduledTask
from timeline.reading.retelling import is_of_the_system
from timeline.registry import registry


def masked(task: ScheduledTask) -> ScheduledTask:
    """A copy to show: no payload, result or error, and no reason that quotes one. Never save it."""
    shown = copy(task)
    shown.payload, shown.result, shown.error = {}, None, ""
    shown.reason = _quiet(task.reason_code, task.reason)
    return shown


def masked_entry(entry: LogEntry) -> LogEntry:
    """A copy to show, as above. Only its times are left of the detail."""
    shown = copy(entry)
    shown.detail = {name: value for name, value in entry.detail.items() if name in _HARMLESS}
    shown.reason = _quiet(entry.reason_code, entry.reason)
    return shown


_HARMLESS = ("scheduled_at", "scheduled_at_before", "resend", "grace", "until")


def _quiet(code: str, text: str) -> str:
    return "" if code == ReasonCode.ERROR else text


def without_people(task: ScheduledTask) -> ScheduledTask:
    """A copy to show: nobody's name, and no text that somebody wrote. An exit keeps its name. Never save it."""
    shown = copy(task)
    shown.actor, shown.reason = "", impersonal(task.reason_code, task.reason, task.timeline)
    return shown


def without_people_entry(entry: LogEntry, task: ScheduledTask) -> LogEntry:
    """A copy of an entry of this task's log to show, as above."""
    shown = copy(entry)
    shown.actor, shown.reason = "", impersonal(entry.reason_code, entry.reason, task.timeline)
    return shown


# Beside these stands what people write; ``leave`` takes a text, too, where an exit has a name.
_PERSONAL = frozenset({ReasonCode.OPERATOR, ReasonCode.MOVED, ReasonCode.EXIT})


def impersonal(code: str, text: str, timeline: str) -> str:
    """
    The text of a reason, if nobody wrote it; else nothing.

    Args:
        code: Of the reason; of a run's end, ``exit``.
        text: As rows keep it.
        timeline: Name of the timeline, whose exits have names.
    """
    if code not in _PERSONAL or is_of_the_system(code, text) or (code == ReasonCode.EXIT and text in _exits(timeline)):
        return text
    return ""


def _exits(timeline: str) -> list[str]:
    try:
        return list(registry.timeline(timeline).exits.values())
    except UnknownTimeline:
        return []
