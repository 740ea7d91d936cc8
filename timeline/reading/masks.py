"""Copies of a task and its log without what only some may read: payload, result and errors; people and their texts."""

from __future__ import annotations

from copy import copy

from timeline.exceptions import UnknownTimeline
from timeline.lifecycle import ReasonCode, RunEnd
from timeline.models import LogEntry, ScheduledTask, TimelineRun
from timeline.reading.reason_texts import is_of_the_system, said_of
from timeline.registry import registry


def masked(task: ScheduledTask) -> ScheduledTask:
    """A copy to show: no payload, result or error, and no reason that quotes one. Never save it."""
    said_of(task)  # Read once, for this and other copies.
    shown = copy(task)
    shown.payload, shown.result, shown.error = {}, None, ""
    shown.reason = _quiet(task.reason_code, task.reason)
    return shown


def masked_entry(entry: LogEntry) -> LogEntry:
    """A copy to show, as ``masked`` makes it. Its detail keeps only times and the package's own sentence."""
    shown = copy(entry)
    shown.detail = {name: value for name, value in entry.detail.items() if name in _HARMLESS}
    shown.reason = _quiet(entry.reason_code, entry.reason)
    return shown


_HARMLESS = ("scheduled_at", "scheduled_at_before", "resend", "grace", "until", "said")


def _quiet(code: str, text: str) -> str:
    return "" if code == ReasonCode.ERROR else text


def without_people(task: ScheduledTask) -> ScheduledTask:
    """A copy to show: without names and texts of people. An exit keeps its name. Never save it."""
    said_of(task)  # Read once, for this and other copies.
    shown = copy(task)
    shown.actor, shown.reason = "", _impersonal(task, task.timeline)
    return shown


def without_people_entry(entry: LogEntry, task: ScheduledTask) -> LogEntry:
    """A copy of an entry of this task's log to show, as ``without_people`` makes it."""
    shown = copy(entry)
    shown.actor, shown.reason = "", _impersonal(entry, task.timeline)
    return shown


# With these codes, a person wrote the text. A text of ``leave`` has the code of an exit, too, but is not the name of an exit.
_PERSONAL = frozenset({ReasonCode.OPERATOR, ReasonCode.MOVED, ReasonCode.EXIT})


def _impersonal(row: ScheduledTask | LogEntry, timeline: str) -> str:
    code, text = row.reason_code, row.reason
    names_exit = code == ReasonCode.EXIT and text in _exits(timeline)
    return text if code not in _PERSONAL or names_exit or is_of_the_system(row) else ""


def is_ended_by_a_person(run: TimelineRun) -> bool:
    """Whether somebody ended a run by hand: then the text of its end was written by a person."""
    return run.end is RunEnd.LEFT


def _exits(timeline: str) -> list[str]:
    try:
        return list(registry.timeline(timeline).exits.values())
    except UnknownTimeline:
        return []
