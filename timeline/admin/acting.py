"""Actions on tasks: count first, ask for a reason, then one call of a shortcut."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from django import forms
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext_lazy, pgettext_lazy

from timeline import shortcuts
from timeline.admin.readers import Reader
from timeline.exceptions import AlreadyOpen, ChangedSince, DateOutOfRange, RunEnded, TimelineError, TransitionNotAllowed
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.policy import POSSIBLE, Action
from timeline.timing import check_time

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise, StrPromise

MAX_CHOSEN = 200  # So many tasks may be chosen at a time; a page of the list has fewer.


class Wording(NamedTuple):
    """
    How a page speaks of an action.

    Args:
        verb: On buttons.
        asks: What happens, with the number of tasks.
        done: What happened, with the number of tasks.
        means: What it means, in a sentence.
    """

    verb: StrPromise
    asks: Any
    done: Any
    means: StrPromise


WORDINGS: Final[Mapping[Action, Wording]] = {
    Action.CANCEL: Wording(
        pgettext_lazy("timeline", "Cancel"),
        ngettext_lazy("Cancel %(count)d task", "Cancel %(count)d tasks", "count"),
        ngettext_lazy("%(count)d task was cancelled.", "%(count)d tasks were cancelled.", "count"),
        gettext_lazy("A cancelled task does not run. What a worker is doing for it right now is rolled back."),
    ),
    Action.MOVE: Wording(
        pgettext_lazy("timeline", "Move"),
        ngettext_lazy("Move %(count)d task", "Move %(count)d tasks", "count"),
        ngettext_lazy("%(count)d task was moved.", "%(count)d tasks were moved.", "count"),
        gettext_lazy("A moved task runs at another time. If the date it hangs on changes later, that date wins."),
    ),
    Action.RUN_NOW: Wording(
        pgettext_lazy("timeline", "Run now"),
        ngettext_lazy("Run %(count)d task now", "Run %(count)d tasks now", "count"),
        ngettext_lazy("%(count)d task is due now.", "%(count)d tasks are due now.", "count"),
        gettext_lazy("The task is due at once. Its guards are read all the same."),
    ),
    Action.REDRIVE: Wording(
        pgettext_lazy("timeline", "Redrive"),
        ngettext_lazy("Redrive %(count)d task", "Redrive %(count)d tasks", "count"),
        ngettext_lazy("%(count)d task was redriven.", "%(count)d tasks were redriven.", "count"),
        gettext_lazy("What has ended stays as it is; a new task, its next revision, is due at once."),
    ),
}

_CALLS: Final[Mapping[Action, Callable[..., list[ScheduledTask]]]] = {
    Action.CANCEL: shortcuts.cancel,
    Action.MOVE: shortcuts.move,
    Action.RUN_NOW: shortcuts.run_now,
    Action.REDRIVE: shortcuts.redrive,
}


class ReasonForm(forms.Form):
    """Why; kept on the task and in its log."""

    reason = forms.CharField(
        label=pgettext_lazy("timeline", "Reason"),
        max_length=200,
        help_text=gettext_lazy("Required, 200 characters at most. It is kept in the log, with your name."),
        widget=forms.TextInput(attrs={"class": "vTextField", "maxlength": 200, "autocomplete": "off"}),
    )

    def __init__(self, *args: Any, now: datetime, zone: tzinfo, **options: Any) -> None:
        self.now = now
        self.zone = zone
        super().__init__(*args, **options)


class MoveForm(ReasonForm):
    """Why, and to when."""

    at = forms.CharField(
        label=pgettext_lazy("timeline", "New time"),
        widget=forms.DateTimeInput(attrs={"type": "datetime-local", "step": 60}),
    )
    field_order = ("at", "reason")

    def clean_at(self) -> datetime:
        """Read a time on the site's clocks; refuse what they never show, or show twice, and what is not ahead."""
        text: str = self.cleaned_data["at"]
        with timezone.override(self.zone):
            at: datetime = forms.DateTimeField().clean(text)
        try:
            at = check_time("at", at)
        except DateOutOfRange:
            raise forms.ValidationError(_("Give a time between the years 1970 and 9000.")) from None
        if at <= self.now:
            raise forms.ValidationError(_("This time has passed. Give one that is ahead; for at once, use “Run now”."))
        return at


def form_for(action: Action) -> type[ReasonForm]:
    """The form that an action asks with."""
    return MoveForm if action == Action.MOVE else ReasonForm


class Count(NamedTuple):
    """
    What an action would do.

    Args:
        able: Tasks that change.
        unable: Why not → tasks that stay as they are.
        gone: How many of those chosen are not there.
    """

    able: list[ScheduledTask]
    unable: dict[str, list[ScheduledTask]]
    gone: int


def count(
    action: Action, tasks: Sequence[ScheduledTask], chosen: int, reader: Reader, carried_on: Collection[UUID]
) -> Count:
    """Tell tasks that an action can change from those it cannot, each with its why; arguments as ``obstacle`` has them."""
    able, unable = [], defaultdict(list)
    for task in tasks:
        if reason := obstacle(action, task, reader, carried_on):
            unable[reason].append(task)
        else:
            able.append(task)
    return Count(able, dict(unable), chosen - len(tasks))


def carried_on_of(ids: Collection[UUID], *, using: str) -> set[UUID]:
    """Which of these tasks have a revision that came after them."""
    later = ScheduledTask.objects.using(using).filter(previous__in=ids)
    return set(later.values_list("previous_id", flat=True))


def obstacle(action: Action, task: ScheduledTask, reader: Reader, carried_on: Collection[UUID]) -> str:
    """
    Say why an action cannot change a task; empty: it can.

    Args:
        action: What somebody wants.
        task: Read with its run.
        reader: Who.
        carried_on: Ids of tasks that have a later revision: that one is redriven, if any.
    """
    if task.state not in POSSIBLE[action]:
        return _("The task is %(state)s.") % {"state": State(task.state).label}
    if action == Action.REDRIVE and task.pk in carried_on:
        return _("A later revision carries on for it; look at that one.")
    if action == Action.REDRIVE and task.run is not None and not (task.run.is_open or task.run.is_finished):
        return _("Its run ended: %(reason)s. Start a new run instead.") % {"reason": reader.end_of(task.run)}
    return "" if action in reader.policy.actions(reader.user, task) else _("You may not do this with it.")


def changed_meanwhile(counted: Count, seen: Mapping[UUID, int]) -> str:
    """
    What to say if tasks are not as they were when they were counted first; empty if all are.

    Args:
        counted: As they are now.
        seen: Task id → its ``seq`` as the page showed it.
    """
    for why, tasks in counted.unable.items():
        said = {"task": tasks[0], "id": tasks[0].pk, "why": why}
        return _("Nothing was changed, because %(task)s (%(id)s) cannot be any more. %(why)s") % said
    if counted.gone:
        return _("Nothing was changed: one of the tasks is not there any more.")
    return next((_changed(task) for task in counted.able if seen.get(task.pk, task.seq) != task.seq), "")


def _changed(task: ScheduledTask, remedy: StrOrPromise = "") -> str:
    said = {"task": task, "id": task.pk, "remedy": remedy or _("Look at it again, and decide anew.")}
    return _("Nothing was changed: %(task)s (%(id)s) has changed since you looked. %(remedy)s") % said


class Done(NamedTuple):
    """What became of it: the tasks that now stand for those chosen, or what was in the way of them all."""

    tasks: list[ScheduledTask]
    problem: str


def perform(
    action: Action,
    tasks: Sequence[ScheduledTask],
    answers: Mapping[str, Any],
    *,
    actor: str,
    seen: Mapping[UUID, int],
    using: str,
) -> Done:
    """Do it to all of the tasks, or to none; to those that were seen, as they were seen."""
    try:
        return Done(_CALLS[action](list(tasks), **answers, actor=actor, seen=seen, using=using), "")
    except ChangedSince as error:
        return Done([], _changed(next(task for task in tasks if task.pk == error.task), error.remedy))
    except (TransitionNotAllowed, AlreadyOpen, RunEnded) as error:
        known = {task.pk: task for task in tasks}
        task = known.get(error.task) if error.task else None  # type: ignore[call-overload]
        return Done([], _problem(task, error))
    except ScheduledTask.DoesNotExist:
        return Done([], _("Nothing was changed: one of the tasks is not there any more."))
    except TimelineError as error:
        return Done([], _problem(None, error))


def _problem(task: ScheduledTask | None, error: TimelineError) -> str:
    if task is None:
        return _("Nothing was changed. %(error)s") % {"error": error}
    if isinstance(error, TransitionNotAllowed):
        said = {"task": task, "id": task.pk, "state": State(error.state).label}
        return _("Nothing was changed: %(task)s (%(id)s) is %(state)s by now.") % said
    return _("Nothing was changed, because of %(task)s. %(error)s") % {"task": task, "error": error}
