"""The page of one task: its story, its attempts and its log, as far as the user may read them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db.models import Q
from django.utils.translation import pgettext

from timeline.admin.subject import Reader
from timeline.features.recurring.reading import schedule_of
from timeline.features.steps.reading import StepLine, how_long
from timeline.lifecycle import ReasonCode, State
from timeline.models import LogEntry
from timeline.reading.explanation import outlook, story_so_far
from timeline.reading.masks import masked_entry
from timeline.reading.reason_texts import retold
from timeline.registry import registry
from timeline.told_times import told_apart

if TYPE_CHECKING:
    from timeline.models import ScheduledTask
    from timeline.models.task import ScheduledTaskQuerySet


SHOWN = 200  # So many entries of a log are shown, the latest.


class AttemptLine(NamedTuple):
    """
    One attempt, as the log tells it, in story time; None for ``ended_at``: it runs.

    ``error`` and ``traceback`` are empty where there is none, or where ``is_hidden``: the user may not read it.
    """

    number: int
    started_at: datetime
    ended_at: datetime | None
    outcome: str
    error: str
    traceback: str
    is_hidden: bool

    @property
    def took(self) -> str:
        """How long it ran."""
        return how_long((self.ended_at - self.started_at).total_seconds()) if self.ended_at else ""


def telling(
    task: ScheduledTask, visible: ScheduledTaskQuerySet, reader: Reader, *, steps: Sequence[StepLine], now: datetime
) -> dict[str, Any]:
    """Put together what the page of a task shows; ``visible`` are the tasks that the user may see."""
    using, payload, people = visible.db, reader.payload, reader.reads_people(task)
    log = reader.hushed(LogEntry.objects.using(using).filter(task=task).order_by("seq"), task)
    entries = log if payload else [masked_entry(entry) for entry in log]
    shown = reader.shown(task)
    parts = told_apart(
        lambda: [
            "\n".join(story_so_far(shown, entries, steps=steps, now=now)),
            *outlook(shown, now=now, using=using, people=people),
        ]
    )
    ahead, story = parts[1:], "\n".join(parts)
    revisions = visible.filter(Q(previous=task.pk) | Q(pk=task.previous_id))
    return {
        "task": shown,
        "story": story.splitlines(),
        "waits": ahead if task.is_open else [],
        "attempts": attempts_of(log[-SHOWN - 1 :], payload=payload),
        "log": [(entry, retold(entry)) for entry in entries[-SHOWN:]],
        "schedule": schedule_of(task.timeline, now=now) if task.run_id else "",
        "is_declared": any(known.name == task.timeline for known in registry),
        "run_ended": reader.end_of(task.run) if task.run else "",
        "sees_people": people,
        "log_is_cut": len(log) > SHOWN,
        "revisions": list(revisions.order_by("revision")),
        "sees_payload": payload,
        "data": _data(task) if payload else [],
    }


def attempts_of(log: Sequence[LogEntry], *, payload: bool) -> list[AttemptLine]:
    """Read the attempts out of a log, the latest first."""
    ends = {entry.attempt: entry for entry in log if entry.from_state == State.ACTIVE != entry.to_state}
    found = []
    for start in log:
        if start.to_state == State.ACTIVE != start.from_state:
            end = ends.get(start.attempt)
            error = end.detail.get("error", {}) if end else {}
            hidden = bool(error) and not payload
            error = {} if hidden else error
            said = f"{error['class']}: {error['message']}" if error else ""
            if end and not said and end.reason_code not in (ReasonCode.DONE, ReasonCode.ERROR):
                said = retold(end)
            label = str(State(end.to_state).label) if end else ""
            traceback = error.get("traceback", "")
            found.append(AttemptLine(start.attempt, start.at, end.at if end else None, label, said, traceback, hidden))
    return found[::-1]


def _data(task: ScheduledTask) -> list[tuple[str, str]]:
    told = [(pgettext("timeline", "Payload"), as_json(task.payload) if task.payload else "")]
    told.append((pgettext("timeline", "Result"), as_json(task.result) if task.result is not None else ""))
    return [*told, (pgettext("timeline", "Last error"), task.error)]


def as_json(value: object) -> str:
    """Write JSON for people."""
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
