"""Picture: an entity's whole timeline as text, past, now and foreseen on one axis."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final

from django.db.models import Model
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from timeline.features.machines.choices import edges_of, line_of
from timeline.features.machines.declaration import table_of
from timeline.features.machines.table import BACK, IGNORE, STAY, Row
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
    """Write a timeline as text for Mermaid, a machine as its table; events that all open states take are a note."""
    lines = _lines(definition) if definition.machine is not None else _flow(definition)
    return "\n".join(lines) + "\n"


def _flow(definition: Definition) -> Iterator[str]:
    names = {task: f"t{number}" for number, task in enumerate(definition.tasks)}
    yield "flowchart LR"
    yield f'    run(["{_escaped(" · ".join(starts_of(definition) or [definition.name]))}"])'
    for task, name in names.items():
        declared = definition.tasks[task]
        said = [declared.title or task, declared.describe(), *guards_of(declared)]
        yield f'    {name}["{"<br>".join(_escaped(part) for part in said if part)}"]'
    for task, name in names.items():
        if (when := definition.tasks[task].when) is not None:
            yield f"    {names.get(when.predecessor_name, 'run')} --> {name}"
    for number, (event, name) in enumerate(definition.exits.items()):
        yield f'    x{number}{{{{"{_escaped(f"{definition.titled(event)} → {definition.titled(name)}")}"}}}}'
        yield f"    run -.-> x{number}"


def _lines(definition: Definition) -> Iterator[str]:
    table = table_of(definition)
    names = {state: f"s{number}" for number, state in enumerate(table.states)}
    yield "stateDiagram-v2"
    for state, name in names.items():
        yield f'    state "{_escaped(definition.titled(state))}" as {name}'
    yield f"    [*] --> {names[table.initial]}"
    for state, row in table.rows.items():
        yield from _ways(state, row, names)
    for state in table.states:
        if state in table.ends:
            yield f"    {names[state]} --> [*]"
    for row, whose in ((table.of_working, "any working state"), (table.of_open, "any open state")):
        if row:
            told = ", ".join(
                line_of(event, edge.told, getattr(edge.target, "name", str(edge.target)))
                for event, target in row.items()
                for edge in edges_of(target)
            )
            yield f"    note left of {names[table.initial]}: {whose} takes {_escaped(told)}"


def _ways(state: str, row: Row, names: Mapping[str, str]) -> Iterator[str]:
    for event, edge in ((event, edge) for event, target in row.items() for edge in edges_of(target)):
        said, target = f"{event} {edge.told}".strip(), edge.target
        if target is BACK:
            yield f"    note right of {names[state]}: back by {_escaped(said)}"
        elif target is not IGNORE:
            end = names[state] if target is STAY else names[str(target)]
            yield f"    {names[state]} --> {end}: {_escaped(said)}"


def _escaped(text: str) -> str:
    return re.sub(r"[^\w .,→-]", lambda letter: f"#{ord(letter[0])};", text)
