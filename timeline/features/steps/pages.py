"""The steps of a task on its page, and what can be decided about them where it rests because of one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext

from timeline import shortcuts
from timeline.admin.actions import FeatureAction, Wording, obstacle, wordings
from timeline.admin.forms import ReasonForm
from timeline.admin.subject import Reader
from timeline.admin.task_page import as_json
from timeline.admin.task_trace import TraceRow
from timeline.exceptions import InvalidInput
from timeline.features.steps.reading import StepLine, StepLines, share
from timeline.features.waits.declaration import ASLEEP, PREFIX
from timeline.lifecycle import State
from timeline.models import ScheduledTask, StepKind
from timeline.payloads import check_json
from timeline.policy import POSSIBLE, Action, is_possible
from timeline.told_times import how_long

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise


class HappenedForm(ReasonForm):
    """Why somebody says that a step happened, and what it would have returned."""

    result = forms.CharField(
        label=gettext_lazy("What it returned"),
        required=False,
        help_text=gettext_lazy('The task goes on with it. As JSON: 7, "text" or {"receipt": 7}. Empty: nothing.'),
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "autocomplete": "off"}),
    )
    field_order = ("result", "reason")

    def clean_result(self) -> Any:
        """Read it; None for nothing."""
        text: str = self.cleaned_data["result"]
        try:
            read = json.loads(text) if text else None
        except json.JSONDecodeError as error:
            said = _("This is no JSON from line %(line)d, column %(column)d on.")
            raise forms.ValidationError(said % {"line": error.lineno, "column": error.colno}) from None
        except (ValueError, RecursionError):
            raise forms.ValidationError(_("This is no JSON that can be read.")) from None
        try:
            check_json("result", read)
        except InvalidInput as error:
            raise forms.ValidationError(str(error)) from None
        return read


def _not_to_decide(task: ScheduledTask, _reader: Reader) -> str:
    return _("It does not wait for a decision about a step.") if task.state in POSSIBLE[Action.DECIDE] else ""


HAPPENED: Final = "step_happened"
FORGET: Final = "forget_step"
GO_ON: Final = "go_on"
DECISIONS: Final = (
    FeatureAction(
        name=HAPPENED,
        action=Action.DECIDE,
        wording=Wording(
            gettext_lazy("It happened"),
            gettext_lazy("Say that step %(step)s happened"),
            gettext_lazy("Step %(step)s counts as done. The task goes on."),
            gettext_lazy("The step counts as done and is not called again. The task goes on behind it at once."),
        ),
        call=shortcuts.step_happened,
        impossible=_not_to_decide,
        form=HappenedForm,
        given=("step",),
    ),
    FeatureAction(
        name=FORGET,
        action=Action.DECIDE,
        wording=Wording(
            gettext_lazy("Do it again"),
            gettext_lazy("Do step %(step)s again"),
            gettext_lazy("Step %(step)s is forgotten. The task goes on, and does it again."),
            gettext_lazy(
                "What is recorded of the step is deleted. The task goes on at once, and calls the step again: if it has "
                "happened, it happens twice."
            ),
        ),
        call=shortcuts.forget_step,
        impossible=_not_to_decide,
        given=("step",),
    ),
    FeatureAction(
        name=GO_ON,
        action=Action.DECIDE,
        wording=Wording(
            gettext_lazy("Go on"),
            gettext_lazy("Let the task go on"),
            gettext_lazy("The task goes on."),
            gettext_lazy(
                "All steps that are done count, in whatever order. The task goes on at once, with the code as it is now."
            ),
        ),
        call=shortcuts.go_on,
        impossible=_not_to_decide,
    ),
)


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
    decisions: list[tuple[str, StrPromise]]


class ToldProgress(NamedTuple):
    """How far the handler says it is, in words; an empty ``note``: it did not say, or the user may not read it."""

    step: StepLine
    share: str
    note: str


def stepping(task: ScheduledTask, steps: StepLines, reader: Reader) -> dict[str, Any]:
    """What the page shows of the steps: of many the latest, and each of which it is not known how it ended."""
    rests = is_possible(Action.DECIDE, task)
    may_decide = rests and not obstacle(GO_ON, task, reader, ())
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
        "wordings": {each.name: each.wording for each in DECISIONS},
    }


def _row(task: ScheduledTask, step: StepLine, *, may_decide: bool) -> StepRow:
    can_be = [HAPPENED, FORGET] if step.is_in_doubt else [FORGET]
    return StepRow(
        step=step,
        state=_state(task, step),
        is_earlier=step.task_id != task.pk,
        took="" if step.seconds is None else how_long(step.seconds),
        share=share(step),
        result="" if step.result is None else as_json(step.result),
        decisions=[(decision, wordings()[decision].verb) for decision in can_be] if may_decide else [],
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
