"""The page of one task: its trace, its story and its log, as far as the user may read them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

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


class Data(NamedTuple):
    """What a task has brought or was given: ``parts`` of a mapping, by name, else ``text``; neither: there is nothing."""

    name: str
    text: str
    parts: list[tuple[str, str]]


def _data(task: ScheduledTask) -> list[Data]:
    """What it brought first; what there is none of comes last."""
    told = [
        _datum(pgettext("timeline", "Result"), task.result),
        Data(pgettext("timeline", "Last error"), task.error, []),
        _datum(pgettext("timeline", "Payload"), task.payload or None),
    ]
    return sorted(told, key=lambda datum: not (datum.text or datum.parts))


def _datum(name: str, value: Any) -> Data:
    if isinstance(value, dict) and value:
        return Data(name, "", [(key, each if isinstance(each, str) else as_json(each)) for key, each in value.items()])
    return Data(name, value if isinstance(value, str) else "" if value is None else as_json(value), [])


def as_json(value: object) -> str:
    """Write JSON for people."""
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
