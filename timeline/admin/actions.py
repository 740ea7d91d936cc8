"""Actions on tasks: count first, ask for a reason, then one call of a shortcut."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, ngettext_lazy, pgettext_lazy

from timeline import shortcuts
from timeline.admin.references import actor_of
from timeline.admin.subject import Reader
from timeline.exceptions import (
    AlreadyOpen,
    ChangedSince,
    RunEnded,
    TimelineError,
    TransitionNotAllowed,
    UnknownTask,
)
from timeline.features.waits.reading import not_to_decide
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.policy import APPROVALS, POSSIBLE, Action, is_possible
from timeline.reading.changes_since import changes_since
from timeline.registry import registry

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise, StrPromise

MAX_CHOSEN = 200  # So many tasks may be chosen at a time; a page of the list has fewer.


class Decision(StrEnum):
    """What somebody may say of one task that rests because of a step: each is the action to decide."""

    STEP_HAPPENED = "step_happened"
    FORGET_STEP = "forget_step"
    GO_ON = "go_on"


Deed = Action | Decision


def action_of(deed: Deed) -> Action:
    """The action that the policy is asked about."""
    return Action.DECIDE if isinstance(deed, Decision) else deed


class Wording(NamedTuple):
    """How a page speaks of an action; ``asks`` and ``done`` take the number of tasks or the name of the step."""

    verb: StrPromise
    asks: Any
    done: Any
    means: StrPromise


WORDINGS: Final[Mapping[Deed, Wording]] = {
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
        pgettext_lazy("timeline", "Run again"),
        ngettext_lazy("Run %(count)d task again", "Run %(count)d tasks again", "count"),
        ngettext_lazy("%(count)d task runs again.", "%(count)d tasks run again.", "count"),
        gettext_lazy("What has ended stays as it is; a new task, its next revision, is due at once."),
    ),
    Action.APPROVE: Wording(
        pgettext_lazy("timeline", "Approve"),
        gettext_lazy("Approve it"),
        gettext_lazy("It is approved. The task goes on."),
        gettext_lazy("The task goes on at once, and is told that you approved it. The first decision stands."),
    ),
    Action.REJECT: Wording(
        pgettext_lazy("timeline", "Reject"),
        gettext_lazy("Reject it"),
        gettext_lazy("It is rejected. The task goes on."),
        gettext_lazy("The task goes on at once, and is told that you rejected it. The first decision stands."),
    ),
    Decision.STEP_HAPPENED: Wording(
        gettext_lazy("It happened"),
        gettext_lazy("Say that step %(step)s happened"),
        gettext_lazy("Step %(step)s counts as done. The task goes on."),
        gettext_lazy("The step counts as done and is not called again. The task goes on behind it at once."),
    ),
    Decision.FORGET_STEP: Wording(
        gettext_lazy("Do it again"),
        gettext_lazy("Do step %(step)s again"),
        gettext_lazy("Step %(step)s is forgotten. The task goes on, and does it again."),
        gettext_lazy(
            "What is recorded of the step is deleted. The task goes on at once, and calls the step again: if it has happened, "
            "it happens twice."
        ),
    ),
    Decision.GO_ON: Wording(
        gettext_lazy("Go on"),
        gettext_lazy("Let the task go on"),
        gettext_lazy("The task goes on."),
        gettext_lazy(
            "All steps that are done count, in whatever order. The task goes on at once, with the code as it is now."
        ),
    ),
}


def _of_one(verb: Callable[..., ScheduledTask]) -> Callable[..., list[ScheduledTask]]:
    return lambda tasks, **given: [verb(task, **given) for task in tasks]


_CALLS: Final[Mapping[Deed, Callable[..., list[ScheduledTask]]]] = {
    Action.CANCEL: shortcuts.cancel,
    Action.MOVE: shortcuts.move,
    Action.RUN_NOW: shortcuts.run_now,
    Action.REDRIVE: shortcuts.redrive,
    Action.APPROVE: _of_one(shortcuts.approve),
    Action.REJECT: _of_one(shortcuts.reject),
    Decision.STEP_HAPPENED: _of_one(shortcuts.step_happened),
    Decision.FORGET_STEP: _of_one(shortcuts.forget_step),
    Decision.GO_ON: _of_one(shortcuts.go_on),
}


class Count(NamedTuple):
    """Tasks that an action changes, those that it cannot change by their why, and how many of the chosen are not there."""

    able: list[ScheduledTask]
    unable: dict[str, list[ScheduledTask]]
    gone: int


def twice(deed: Deed, tasks: Iterable[ScheduledTask]) -> str:
    """Warn of tasks that completed, and whose handlers do something outside of the database, before they are run again."""
    if deed != Action.REDRIVE:
        return ""
    number = sum(task.state == State.COMPLETED and _acts_outside(task) for task in tasks)
    said = ngettext(
        "%(count)d of these has completed, and does something outside of the database: it happens twice.",
        "%(count)d of these have completed, and do something outside of the database: it happens twice.",
        number,
    )
    return said % {"count": number} if number else ""


def _acts_outside(task: ScheduledTask) -> bool:
    """Whether its handler has no transaction around it, or cannot be undone. Of what nobody declares, nobody knows."""
    try:
        declared = registry.task(task.task_key)[1]
    except UnknownTask:
        return True
    return not declared.options.atomic or declared.options.destructive or bool(declared.is_async)


def count(
    deed: Deed, tasks: Sequence[ScheduledTask], chosen: int, reader: Reader, carried_on: Collection[UUID]
) -> Count:
    """Tell tasks that an action can change from those it cannot, each with its why; arguments as ``obstacle`` has them."""
    able, unable = [], defaultdict(list)
    for task in tasks:
        if reason := obstacle(deed, task, reader, carried_on):
            unable[reason].append(task)
        else:
            able.append(task)
    return Count(able, dict(unable), chosen - len(tasks))


def carried_on_of(ids: Collection[UUID], *, using: str) -> set[UUID]:
    """Which of these tasks have a revision that came after them."""
    later = ScheduledTask.objects.using(using).filter(previous__in=ids)
    return set(later.values_list("previous_id", flat=True))


def obstacle(deed: Deed, task: ScheduledTask, reader: Reader, carried_on: Collection[UUID]) -> str:
    """Say why an action cannot change a task; empty: it can. ``carried_on`` are ids of tasks that have a later revision."""
    action = action_of(deed)
    if action in APPROVALS and not is_possible(action, task):
        return (
            not_to_decide(task)
            if reader.policy.may_decide(reader.user, task)
            else _("It asks for no approval of yours.")
        )
    if task.state not in POSSIBLE[action]:
        return _("The task is %(state)s.") % {"state": State(task.state).label}
    if not is_possible(action, task):
        return _("It does not wait for a decision about a step.")
    if action == Action.REDRIVE and task.pk in carried_on:
        return _("A later revision carries on for it; look at that one.")
    if action == Action.REDRIVE and task.run is not None and not (task.run.is_open or task.run.is_finished):
        return _("Its run ended: %(reason)s. Start a new run instead.") % {"reason": reader.end_of(task.run)}
    return "" if action in reader.policy.actions(reader.user, task) else _("You may not do this with it.")


class ActionOutcome(NamedTuple):
    """
    What became of it; no tasks: nothing was changed, and ``problem`` says why.

    ``since`` says who has changed what since it was looked at.
    """

    tasks: list[ScheduledTask]
    problem: str
    since: Sequence[str] = ()


def changed_meanwhile(counted: Count, seen: Mapping[UUID, int], reader: Reader, *, using: str) -> ActionOutcome:
    """Say what is in the way, if tasks are not as the page showed them; ``seen`` is task id → its ``seq`` there."""
    for why, tasks in counted.unable.items():
        said = {"task": tasks[0], "id": tasks[0].pk, "why": why}
        problem = _("Nothing was changed, because %(task)s (%(id)s) cannot be any more. %(why)s") % said
        return ActionOutcome([], problem, _since(tasks[0], seen, reader, using))
    if counted.gone:
        return ActionOutcome([], _("Nothing was changed: one of the tasks is not there any more."))
    for task in counted.able:
        if seen.get(task.pk, task.seq) != task.seq:
            return ActionOutcome([], _changed(task), _since(task, seen, reader, using))
    return ActionOutcome([], "")


def _changed(task: ScheduledTask, remedy: StrOrPromise = "") -> str:
    said = {"task": task, "id": task.pk, "remedy": remedy or _("Look at it again, and decide anew.")}
    return _("Nothing was changed: %(task)s (%(id)s) has changed since you looked. %(remedy)s") % said


def _since(task: ScheduledTask, seen: Mapping[UUID, int], reader: Reader, using: str) -> list[str]:
    """Who changed what, as far as the reader may read it; nothing, where nobody said what they saw."""
    if task.pk not in seen:
        return []
    people = reader.reads_people(task)
    return changes_since(task, seen[task.pk], payload=reader.payload, people=people, using=using)


def perform(
    deed: Deed,
    tasks: Sequence[ScheduledTask],
    answers: Mapping[str, Any],
    *,
    reader: Reader,
    seen: Mapping[UUID, int],
    using: str,
) -> ActionOutcome:
    """Do it to all of the tasks, or to none; to those that were seen, as they were seen."""
    actor = actor_of(reader.user)
    try:
        return ActionOutcome(_CALLS[deed](list(tasks), **answers, actor=actor, seen=seen, using=using), "")
    except ChangedSince as error:
        changed = next(task for task in tasks if task.pk == error.task)
        return ActionOutcome([], _changed(changed, error.remedy), _since(changed, seen, reader, using))
    except (TransitionNotAllowed, AlreadyOpen, RunEnded) as error:
        known = {task.pk: task for task in tasks}
        task = known.get(error.task) if error.task else None  # type: ignore[call-overload]
        return ActionOutcome([], _problem(task, error), _since(task, seen, reader, using) if task else ())
    except ScheduledTask.DoesNotExist:
        return ActionOutcome([], _("Nothing was changed: one of the tasks is not there any more."))
    except TimelineError as error:
        return ActionOutcome([], _problem(None, error))


def _problem(task: ScheduledTask | None, error: TimelineError) -> str:
    if task is None:
        return _("Nothing was changed. %(error)s") % {"error": error}
    if isinstance(error, TransitionNotAllowed):
        said = {"task": task, "id": task.pk, "state": State(error.state).label}
        return _("Nothing was changed: %(task)s (%(id)s) is %(state)s by now.") % said
    return _("Nothing was changed, because of %(task)s. %(error)s") % {"task": task, "error": error}
