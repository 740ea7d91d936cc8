"""Picture: an entity's whole timeline as text, past, now and foreseen on one axis."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from django.db.models import Model
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from timeline.lifecycle import State
from timeline.models import EntityRef, ScheduledTask, ref_of
from timeline.reading.explaining import why
from timeline.reading.foreseeing import foreseen
from timeline.reading.recalling import recall
from timeline.registry import registry
from timeline.timing import in_utc

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
    Draw an entity's timeline.

    Args:
        entity: The entity; None: the system.
        now: Story time; drawn as a line between past and future.
        using: Database alias of the entity.

    Returns:
        Lines of text: sign, time (UTC), task key, state, reason. Follow-ups that have no row yet are dotted; tasks ahead of a
        timeline in shadow are marked.
    """
    tasks = list(ScheduledTask.objects.using(using).for_entity(entity).order_by("scheduled_at", "pk"))
    recall(tasks, using=using)
    outlooks = foreseen(entity=entity, now=now, using=using)
    width = max([len(task.full_key) for task in tasks] + [len(item.task_key) for item in outlooks] + [0])
    lines: list[tuple[datetime | None, str]] = []
    for task in tasks:
        lines.append(
            (_moment(task), _line(_SIGNS[State(task.state)], _moment(task), task.full_key, width, _said(task)))
        )
    for item in outlooks:
        said = _marked(_("foreseen: %(why)s") % {"why": item.why}, item.task_key)
        lines.append((item.expected_at, _line("┄", item.expected_at, item.task_key, width, said)))
    before = [line for at, line in lines if at is not None and at <= now]
    later = [line for at, line in lines if at is None or at > now]
    mark, nothing = _("now: %(at)s") % {"at": in_utc(now)}, _("nothing ahead")
    return "\n".join([str(ref_of(entity)), *before, f"  ── {mark} ──", *(later or [f"  {nothing}"])])


def _moment(task: ScheduledTask) -> datetime:
    """The place of a task on the axis: when it ended, or when it is due."""
    return task.finished_at or task.scheduled_at


def _line(sign: str, at: datetime | None, task_key: str, width: int, said: str) -> str:
    moment = in_utc(at).removesuffix(" UTC") if at else pgettext("timeline", "some day").ljust(16)
    return f"  {sign} {moment}  {task_key:<{width}}  {said}"


def _said(task: ScheduledTask) -> str:
    reason = why(task)
    state = str(State(task.state).label)
    said = f"{state} ({reason})" if reason else state
    return _marked(said, task.task_key) if task.is_open else said


def _marked(said: str, task_key: str) -> str:
    """For a task that is ahead, add that its handler will not be entered, if its timeline is in shadow."""
    return _("%(said)s, in shadow") % {"said": said} if registry.in_shadow(task_key) else said
