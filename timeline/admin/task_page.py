"""The page of one task: its trace, its story and its log, as far as the user may read them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db.models import Q
from django.utils.translation import pgettext

from timeline.admin.subject import Reader
from timeline.admin.task_trace import TraceRow, attempts_of, changed, compared, trace
from timeline.features.recurring.reading import schedule_of
from timeline.lifecycle import ReasonCode
from timeline.models import LogEntry
from timeline.reading.explanation import first_due, outlook, story_so_far
from timeline.reading.masks import masked_entry
from timeline.reading.reason_texts import told_reason
from timeline.registry import registry
from timeline.told_times import told_apart

if TYPE_CHECKING:
    from django.http import QueryDict

    from timeline.features.steps.reading import StepLine
    from timeline.models import ScheduledTask
    from timeline.models.task import ScheduledTaskQuerySet


# Reasons whose text is a name in code; people read the words for it.
_NAMED = frozenset({ReasonCode.EXIT, ReasonCode.GUARD, ReasonCode.UNTIL})
SHOWN = 200  # So many entries of a log are shown, the latest.


def telling(
    task: ScheduledTask,
    visible: ScheduledTaskQuerySet,
    reader: Reader,
    *,
    steps: Sequence[StepLine],
    parts: Iterable[TraceRow],
    asked: QueryDict,
    now: datetime,
) -> dict[str, Any]:
    """
    Put together what the page of a task shows; ``visible`` are the tasks that the user may see. ``asked``: which two attempts
    are compared.
    """
    using, payload, people = visible.db, reader.payload, reader.reads_people(task)
    log = reader.hushed(LogEntry.objects.using(using).filter(task=task).order_by("seq"), task)
    entries = log if payload else [masked_entry(entry) for entry in log]
    shown = reader.shown(task)
    said = told_apart(
        lambda: [
            "\n".join(story_so_far(shown, entries, steps=steps, now=now)),
            *outlook(shown, now=now, using=using, people=people),
        ]
    )
    ahead, story = said[1:], "\n".join(said)
    attempts = attempts_of(log, payload=payload)
    rows, trace_is_cut = trace(shown, entries, attempts, parts, now=now)
    revisions = visible.filter(Q(previous=task.pk) | Q(pk=task.previous_id))
    return {
        "task": shown,
        "story": story.splitlines(),
        "waits": ahead if task.is_open else [],
        "first_due": first_due(shown, entries),
        "trace": rows,
        "trace_is_cut": trace_is_cut,
        "compared": compared(attempts[-SHOWN:], asked),
        "log": [(entry, changed(entry), told_reason(entry, task.timeline)) for entry in entries[-SHOWN:]],
        "schedule": schedule_of(task.timeline, now=now) if task.run_id else "",
        "is_declared": any(known.name == task.timeline for known in registry),
        "named_reason": shown.reason if shown.reason_code in _NAMED else "",
        "run_state": registry.title_in(task.timeline, task.run.state) if task.run else "",
        "cause": registry.titled_in(task.timeline, task.cause.name) if task.cause else "",
        "run_ended": reader.end_of(task.run) if task.run else "",
        "sees_people": people,
        "log_is_cut": len(log) > SHOWN,
        "revisions": list(revisions.order_by("revision")),
        "sees_payload": payload,
        "data": _data(task) if payload else [],
    }


def _data(task: ScheduledTask) -> list[tuple[str, str]]:
    told = [(pgettext("timeline", "Payload"), as_json(task.payload) if task.payload else "")]
    told.append((pgettext("timeline", "Result"), as_json(task.result) if task.result is not None else ""))
    return [*told, (pgettext("timeline", "Last error"), task.error)]


def as_json(value: object) -> str:
    """Write JSON for people."""
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
