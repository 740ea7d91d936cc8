"""Actions on tasks: count first, ask for a reason, then one call of a shortcut."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
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
from timeline.hooks import of_features
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.policy import POSSIBLE, Action, is_possible
from timeline.reading.changes_since import changes_since
from timeline.registry import registry

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise, StrPromise

    from timeline.admin.forms import ReasonForm

MAX_CHOSEN = 200  # So many tasks may be chosen at a time; a page of the list has fewer.


Deed = str  # An action, or what a feature calls its own.


class Wording(NamedTuple):
    """How a page speaks of an action; ``asks`` and ``done`` take the number of tasks, or what is ``given``."""

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
        pgettext_lazy("timeline", "Run again"),
        ngettext_lazy("Run %(count)d task again", "Run %(count)d tasks again", "count"),
        ngettext_lazy("%(count)d task runs again.", "%(count)d tasks run again.", "count"),
        gettext_lazy("What has ended stays as it is; a new task, its next revision, is due at once."),
    ),
}


class FeatureAction(NamedTuple):
    """
    What a feature has people do with one task: it names these in ``DECISIONS`` of its module ``pages``.

    Args:
        name: As forms say it.
        action: What the policy is asked about.
        call: Does it, to one task, as shortcuts do.
        impossible: Given a task with which it leads nowhere, and who looks: why; empty: by its state alone.
        form: What is asked; None: the reason.
        given: Names of what its button says beside, which ``wording`` and ``call`` take.
    """

    name: str
    action: Action
    wording: Wording
    call: Callable[..., ScheduledTask]
    impossible: Callable[[ScheduledTask, Reader], str]
    form: type[ReasonForm] | None = None
    given: tuple[str, ...] = ()


@cache
def feature_actions() -> Mapping[str, FeatureAction]:
    """Those of all features, by their names."""
    return {each.name: each for each in chain.from_iterable(of_features("pages", "DECISIONS"))}


@cache
def wordings() -> Mapping[str, Wording]:
    """How pages speak of all that is done with one task."""
    theirs = ((name, each.wording) for name, each in feature_actions().items())
    return dict(chain(WORDINGS.items(), theirs))


def action_of(deed: Deed) -> Action:
    """The action that the policy is asked about."""
    theirs = feature_actions().get(deed)
    return theirs.action if theirs is not None else Action(deed)


_CALLS: Final[Mapping[Action, Callable[..., list[ScheduledTask]]]] = {
    Action.CANCEL: shortcuts.cancel,
    Action.MOVE: shortcuts.move,
    Action.RUN_NOW: shortcuts.run_now,
    Action.REDRIVE: shortcuts.redrive,
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
    action, theirs = action_of(deed), feature_actions().get(deed)
    if theirs is not None and not is_possible(action, task) and (why := theirs.impossible(task, reader)):
        return why
    if task.state not in POSSIBLE[action]:
        return _("The task is %(state)s.") % {"state": State(task.state).label}
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
    given = {**answers, "actor": actor_of(reader.user), "seen": seen, "using": using}
    theirs = feature_actions().get(deed)
    try:
        done = [theirs.call(task, **given) for task in tasks] if theirs else _CALLS[Action(deed)](list(tasks), **given)
        return ActionOutcome(done, "")
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
