"""Masking: a task and its log without what only some may read, payload, result and errors."""

from __future__ import annotations

from copy import copy

from timeline.lifecycle import ReasonCode
from timeline.models import LogEntry, ScheduledTask


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
