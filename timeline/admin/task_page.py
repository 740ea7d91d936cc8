"""The page of one task: its trace, its story and its log, as far as the user may read them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.utils.translation import pgettext

from timeline.admin.subject import Reader
from timeline.admin.task_trace import TraceRow, attempts_of, changed, compared, trace
from timeline.features.recurring.reading import schedule_of
from timeline.lifecycle import ReasonCode
from timeline.reading.explanation import outlook, story_so_far
from timeline.reading.masks import masked_entry
from timeline.reading.reason_texts import told_reason
from timeline.registry import registry
from timeline.told_times import told_apart

if TYPE_CHECKING:
    from django.http import QueryDict

    from timeline.features.steps.reading import StepLines
    from timeline.models import ScheduledTask
    from timeline.reading.log_parts import LogPart


# Reasons whose text is a name in code; people read the words for it.
_NAMED: Final = frozenset({ReasonCode.EXIT, ReasonCode.GUARD, ReasonCode.UNTIL})
MOST_DIGITS: Final = 9  # Of the number of an entry.
LINE: Final = 60  # Letters of JSON that stay in one line.


def telling(
    task: ScheduledTask,
    log: LogPart,
    reader: Reader,
    *,
    steps: StepLines,
    parts: Iterable[TraceRow],
    asked: QueryDict,
    now: datetime,
    using: str,
) -> dict[str, Any]:
    """Put together what the page of a task shows. ``asked``: which two attempts are compared."""
    payload, people = reader.payload, reader.reads_people(task)
    log = log._replace(entries=reader.hushed(log.entries, task))
    seen = log if payload else log._replace(entries=[masked_entry(entry) for entry in log.entries])
    shown = reader.shown(task)
    said = told_apart(
        lambda: [
            "\n".join(story_so_far(shown, seen, steps=steps, now=now)),
            *outlook(shown, now=now, using=using, people=people),
        ]
    )
    ahead, story = said[1:], "\n".join(said)
    attempts = attempts_of(log.entries, payload=payload)
    rows, trace_is_cut = trace(shown, seen, attempts, parts, now=now)
    return {
        "task": shown,
        "story": story.splitlines(),
        "ahead": ahead if task.is_open else [],
        "first_due": log.first_due or task.scheduled_at,
        "trace": rows,
        "trace_is_cut": trace_is_cut or log.left_out,
        "compared": compared(attempts, asked),
        "log": [(entry, changed(entry), told_reason(entry, task.timeline)) for entry in seen.entries],
        "log_count": log.entries[-1].seq if log.entries and log.is_latest else task.seq,
        "log_left_out": log.left_out,
        "log_from": log.entries[0].seq if log.entries else 0,
        "log_upto": log.entries[-1].seq if log.entries else 0,
        "log_is_latest": log.is_latest,
        "schedule": schedule_of(task.timeline, now=now) if task.run_id else "",
        "is_declared": any(known.name == task.timeline for known in registry),
        "named_reason": shown.reason if shown.reason_code in _NAMED else "",
        "run_state": registry.title_in(task.timeline, task.run.state) if task.run else "",
        "cause": registry.titled_in(task.timeline, task.cause.name) if task.cause else "",
        "run_ended": reader.end_of(task.run) if task.run else "",
        "sees_people": people,
        "sees_payload": payload,
        "data": _data(task) if payload else [],
    }


def place_in_log(asked: QueryDict) -> int | None:
    """Before which entry the part of the log ends that is asked for; None: the latest is."""
    given = asked.get("before", "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < MOST_DIGITS else None


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
        return Data(name, "", [(key, each if isinstance(each, str) else _short(each)) for key, each in value.items()])
    return Data(name, value if isinstance(value, str) else "" if value is None else as_json(value), [])


def _short(value: object) -> str:
    """What fits is in one line."""
    line = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return line if len(line) <= LINE else as_json(value)


def as_json(value: object) -> str:
    """Write JSON for people."""
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
