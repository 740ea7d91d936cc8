"""Actions on tasks: count first, ask for a reason, then one call of a shortcut."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from django.utils.translation import gettext as _

from timeline import shortcuts
from timeline.admin.naming import actor_of
from timeline.admin.readers import Reader
from timeline.admin.wording import Decision, Deed, action_of
from timeline.exceptions import AlreadyOpen, ChangedSince, RunEnded, TimelineError, TransitionNotAllowed
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.policy import APPROVALS, POSSIBLE, Action, is_possible
from timeline.reading.changes import changes_since
from timeline.reading.waits import not_to_decide

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

MAX_CHOSEN = 200  # So many tasks may be chosen at a time; a page of the list has fewer.


def _of_one(verb: Callable[..., ScheduledTask]) -> Callable[..., list[ScheduledTask]]:
    """A verb that is for one task at a time, as one for several."""
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
    """
    Say why an action cannot change a task; empty: it can.

    Args:
        deed: What somebody wants.
        task: Read with its run.
        reader: Who.
        carried_on: Ids of tasks that have a later revision: that one is redriven, if any.
    """
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


class Done(NamedTuple):
    """
    What became of it.

    Args:
        tasks: That now stand for those chosen; none: nothing was changed.
        problem: What was in the way of them all; empty: nothing.
        since: Who has changed what of it since it was looked at, in sentences.
    """

    tasks: list[ScheduledTask]
    problem: str
    since: Sequence[str] = ()


def changed_meanwhile(counted: Count, seen: Mapping[UUID, int], reader: Reader, *, using: str) -> Done:
    """
    Say what is in the way, if tasks are not as they were when they were counted first.

    Args:
        counted: As they are now.
        seen: Task id → its ``seq`` as the page showed it.
        reader: Who looks.
        using: Database alias.
    """
    for why, tasks in counted.unable.items():
        said = {"task": tasks[0], "id": tasks[0].pk, "why": why}
        problem = _("Nothing was changed, because %(task)s (%(id)s) cannot be any more. %(why)s") % said
        return Done([], problem, _since(tasks[0], seen, reader, using))
    if counted.gone:
        return Done([], _("Nothing was changed: one of the tasks is not there any more."))
    for task in counted.able:
        if seen.get(task.pk, task.seq) != task.seq:
            return Done([], _changed(task), _since(task, seen, reader, using))
    return Done([], "")


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
) -> Done:
    """Do it to all of the tasks, or to none; to those that were seen, as they were seen."""
    actor = actor_of(reader.user)
    try:
        return Done(_CALLS[deed](list(tasks), **answers, actor=actor, seen=seen, using=using), "")
    except ChangedSince as error:
        changed = next(task for task in tasks if task.pk == error.task)
        return Done([], _changed(changed, error.remedy), _since(changed, seen, reader, using))
    except (TransitionNotAllowed, AlreadyOpen, RunEnded) as error:
        known = {task.pk: task for task in tasks}
        task = known.get(error.task) if error.task else None  # type: ignore[call-overload]
        return Done([], _problem(task, error), _since(task, seen, reader, using) if task else ())
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
