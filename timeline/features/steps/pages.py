"""The steps of a task on its page, and what can be decided about them where it rests because of one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from timeline.admin.actions import WORDINGS, Decision, obstacle
from timeline.admin.subject import Reader
from timeline.admin.task_page import as_json
from timeline.admin.task_trace import TraceRow
from timeline.features.steps.reading import StepLine, StepLines, share
from timeline.features.waits.declaration import ASLEEP, PREFIX
from timeline.lifecycle import State
from timeline.models import ScheduledTask, StepKind
from timeline.policy import Action, is_possible
from timeline.told_times import how_long

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise


class StepRow(NamedTuple):
    """
    One step, as the table has it.

    Args:
        is_earlier: Whether an earlier revision took it.
        took: How long; empty: not known.
        share: How far a loop has come, in words; empty: it is none.
        result: Empty: nothing, or the user may not read it.
        decisions: What the user may say of it, with the words of its button.
    """

    step: StepLine
    state: str
    is_earlier: bool
    took: str
    share: str
    result: str
    decisions: list[tuple[Decision, StrPromise]]


class ToldProgress(NamedTuple):
    """How far the handler says it is, in words; an empty ``note``: it did not say, or the user may not read it."""

    step: StepLine
    share: str
    note: str


def stepping(task: ScheduledTask, steps: StepLines, reader: Reader) -> dict[str, Any]:
    """What the page shows of the steps: of many the latest, and each of which it is not known how it ended."""
    rests = is_possible(Action.DECIDE, task)
    may_decide = rests and not obstacle(Decision.GO_ON, task, reader, ())
    told = [ToldProgress(step, share(step), step.result or "") for step in steps if step.kind == StepKind.NOTE]
    shown = [step for step in steps if step.kind != StepKind.NOTE]
    rows = [_row(task, step, may_decide=may_decide) for step in shown]
    in_doubt = [row for row in rows if row.step.is_in_doubt]
    return {
        "steps": rows,
        "progress": told[0] if told else None,
        "steps_left_out": steps.left_out,
        "steps_have_decisions": may_decide and not in_doubt,
        "rests": rests,
        "may_decide": may_decide,
        "in_doubt": in_doubt,
        "wordings": {deed.value: WORDINGS[deed] for deed in Decision},
    }


def _row(task: ScheduledTask, step: StepLine, *, may_decide: bool) -> StepRow:
    can_be = [Decision.STEP_HAPPENED, Decision.FORGET_STEP] if step.is_in_doubt else [Decision.FORGET_STEP]
    return StepRow(
        step=step,
        state=_state(task, step),
        is_earlier=step.task_id != task.pk,
        took="" if step.seconds is None else how_long(step.seconds),
        share=share(step),
        result="" if step.result is None else as_json(step.result),
        decisions=[(decision, WORDINGS[decision].verb) for decision in can_be] if may_decide else [],
    )


def parts_of(task: ScheduledTask, steps: Iterable[StepLine], now: datetime) -> Iterator[TraceRow]:
    """What the attempts of a task consisted of, for its trace."""
    for step in steps:
        begun = step.recorded_at - timedelta(seconds=step.seconds or 0)
        why = share(step) if step.task_id == task.pk else _("of an earlier revision")
        took = "" if step.seconds is None else how_long(step.seconds)
        if step.kind == StepKind.NOTE:
            continue  # It has a card of its own.
        if step.is_sleep:
            until = max(now, begun) if step.kind == StepKind.WAIT and task.is_open else step.recorded_at
            what = _("Sleep %(name)s") % {"name": step.name.removeprefix(ASLEEP)}
            yield TraceRow(begun, until, what, State.SCHEDULED, took=took, is_part=True)
        elif step.kind in (StepKind.WAIT, StepKind.OVER):
            told = {"events": step.name.removeprefix(PREFIX)}
            came = _("%(events)s came") if step.done else _("%(events)s did not come in time")
            what = (_("waits for %(events)s") if step.kind == StepKind.WAIT else came) % told
            until = max(now, begun) if step.kind == StepKind.WAIT and task.is_open else step.recorded_at
            yield TraceRow(begun, until, what, State.SCHEDULED, is_part=True)
        elif step.is_in_doubt:
            what = _("Step %(step)s: begun, its end is not known") % {"step": step.name}
            yield TraceRow(begun, step.recorded_at, what, State.RETRYABLE, why, is_part=True)
        else:
            what = _("Step %(step)s") % {"step": step.name}
            yield TraceRow(begun, step.recorded_at, what, State.COMPLETED, why, took=took, is_part=True)


def _state(task: ScheduledTask, step: StepLine) -> str:
    if step.kind == StepKind.LOOP:
        return str(step.kind.label) if task.state == State.ACTIVE else pgettext("timeline", "half done")
    if not step.is_in_doubt:
        return str(step.kind.label)
    if task.state == State.ACTIVE and (step.task_id, step.attempt) == (task.pk, task.attempt):
        return pgettext("timeline", "under way")
    return pgettext("timeline", "in doubt")
