"""Picture: an entity's whole timeline as text, past, now and foreseen on one axis."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Final

from django.db.models import Model
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from timeline.lifecycle import ReasonCode, State
from timeline.models import EntityRef, ScheduledTask, ref_of
from timeline.reading.explanation import standing
from timeline.reading.in_the_way import in_the_way
from timeline.reading.outlook import foreseen
from timeline.reading.reason_texts import recall
from timeline.reading.timeline_pictures import guards_of, starts_of
from timeline.registry import registry
from timeline.timing import told_time
from timeline.told_times import told_apart, where_apart

if TYPE_CHECKING:
    from timeline.definition import Definition


_SIGNS: Final = {
    State.SCHEDULED: "○",
    State.AVAILABLE: "◎",
    State.PENDING: "◎",
    State.ACTIVE: "●",
    State.RETRYABLE: "↻",
    State.COMPLETED: "✓",
    State.DISCARDED: "✗",
    State.CANCELLED: "–",
}


def picture(entity: Model | EntityRef | None, *, now: datetime, using: str) -> str:
    """
    Draw an entity's timeline; None: the system's. Lines have sign, time in UTC, task key, state and reason.

    Seconds are told where two times are of one minute. Follow-ups without a row are dotted; tasks in shadow are marked.
    """
    return "\n".join(told_apart(lambda: _drawn(entity, now=now, using=using)))


def _drawn(entity: Model | EntityRef | None, *, now: datetime, using: str) -> list[str]:
    tasks = list(ScheduledTask.objects.using(using).for_entity(entity).order_by("scheduled_at", "pk"))
    recall(tasks, using=using)
    outlooks = foreseen(entity=entity, now=now, using=using)
    held = in_the_way(tasks, using=using)
    width = max([len(task.full_key) for task in tasks] + [len(item.task_key) for item in outlooks] + [0])
    lines: list[tuple[datetime | None, str]] = []
    for task in tasks:
        said = _said(task, held.get(task.pk, ""))
        lines.append((_moment(task), _line(_SIGNS[State(task.state)], _moment(task), task.full_key, width, said)))
    for item in outlooks:
        said = _marked(_("foreseen: %(why)s") % {"why": item.why}, item.task_key)
        lines.append((item.expected_at, _line("┄", item.expected_at, item.task_key, width, said)))
    before = [line for at, line in lines if at is not None and at <= now]
    later = [line for at, line in lines if at is None or at > now]
    mark, nothing = _("now: %(at)s") % {"at": told_time(now)}, _("nothing ahead")
    return [str(ref_of(entity)), *before, f"  ── {mark} ──", *(later or [f"  {nothing}"])]


def _moment(task: ScheduledTask) -> datetime:
    return task.finished_at or task.scheduled_at


def _line(sign: str, at: datetime | None, task_key: str, width: int, said: str) -> str:
    moment = (
        told_time(at).removesuffix(" UTC") if at else pgettext("timeline", "some day").ljust(16) + where_apart("   ")
    )
    return f"  {sign} {moment}  {task_key:<{width}}  {said}"


def _said(task: ScheduledTask, held: str) -> str:
    reason = "; ".join(filter(None, [held, standing(task)]))
    if task.reason_code == ReasonCode.ERROR and task.error:
        # A message without the class of its error may be "'name'".
        reason = f"{task.error.partition(':')[0]}: {reason}"
    state = str(State(task.state).label)
    said = f"{state} ({reason})" if reason else state
    return _marked(said, task.task_key) if task.is_open else said


def _marked(said: str, task_key: str) -> str:
    return _("%(said)s, in shadow") % {"said": said} if registry.in_shadow(task_key) else said


def mermaid_of(definition: Definition) -> str:
    """Write a timeline as text for Mermaid."""
    return "\n".join(_flow(definition)) + "\n"


def _flow(definition: Definition) -> Iterator[str]:
    names = {task: f"t{number}" for number, task in enumerate(definition.tasks)}
    yield "flowchart LR"
    yield f'    run(["{escaped(" · ".join(starts_of(definition) or [definition.name]))}"])'
    for task, name in names.items():
        declared = definition.tasks[task]
        said = [declared.title or task, declared.describe(), *guards_of(definition, declared)]
        yield f'    {name}["{"<br>".join(escaped(part) for part in said if part)}"]'
    for task, name in names.items():
        if (when := definition.tasks[task].when) is not None:
            yield f"    {names.get(when.predecessor_name, 'run')} --> {name}"
    for number, (event, name) in enumerate(definition.exits.items()):
        yield f'    x{number}{{{{"{escaped(f"{definition.titled(event)} → {definition.titled(name)}")}"}}}}'
        yield f"    run -.-> x{number}"


def escaped(text: str) -> str:
    """As Mermaid takes a text."""
    return re.sub(r"[^\w .,→-]", lambda letter: f"#{ord(letter[0])};", text)
