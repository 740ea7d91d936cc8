"""
Act in bulk: a person chooses an action for all tasks that a filter selects, and polls carry it out, batch by batch.

A batch commits with its place: after a crash nothing is done twice. The rights of who asked are checked each time. Lock
order: the bulk action, then as everywhere entities, runs, tasks. Whoever else has one of these never locks the action.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from operator import attrgetter
from time import monotonic
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.contrib.auth import get_user_model
from django.core.exceptions import ObjectDoesNotExist, ValidationError

from timeline.dialects import Among
from timeline.exceptions import AlreadyOpen, RunEnded, TimelineError, TransitionNotAllowed
from timeline.lifecycle import Reason
from timeline.models import BulkAction, ScheduledTask, TimelineRun
from timeline.operations.cancel import cancel
from timeline.operations.move import move, run_now
from timeline.operations.redrive import redrive
from timeline.policy import POSSIBLE, Action, TimelinePolicy, get_policy
from timeline.store.database_errors import catching, is_passing, is_usable
from timeline.store.poll_queries import AT_ONCE, polling
from timeline.store.returned_rows import read_models
from timeline.store.signal_dispatch import announce
from timeline.store.transactions import atomic

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet
    from timeline.policy import User


logger = logging.getLogger("timeline")

_VERBS: Final[Mapping[Action, Callable[..., list[ScheduledTask]]]] = {
    Action.CANCEL: cancel,
    Action.MOVE: move,
    Action.RUN_NOW: run_now,
    Action.REDRIVE: redrive,
}
ACTIONS: Final = tuple(_VERBS)
BATCH: Final = 500
A_TURN: Final = 0.4  # Seconds until a poll goes on with due tasks; it comes back to bulk actions if it has time.
AT_ONCE_OPEN: Final = 20  # Bulk actions that one poll looks at.
KEPT: Final = timedelta(days=30)

# Why a task is not changed.
CHANGED: Final = "changed"
CARRIED_ON: Final = "carried_on"
RUN_ENDED: Final = "run_ended"
FORBIDDEN: Final = "forbidden"
REFUSED: Final = "refused"
WHY: Final = (CHANGED, CARRIED_ON, RUN_ENDED, FORBIDDEN, REFUSED)

_CODES: Final[Sequence[tuple[type[Exception], str]]] = (
    (TransitionNotAllowed, CHANGED),
    (ScheduledTask.DoesNotExist, CHANGED),
    (AlreadyOpen, CARRIED_ON),
    (RunEnded, RUN_ENDED),
    (TimelineError, REFUSED),
)


def able(bulk: BulkAction, visible: ScheduledTaskQuerySet) -> ScheduledTaskQuerySet:
    """The visible tasks that the filter selects and whose state the action can change."""
    return bulk.narrow(visible).filter(state__in=sorted(POSSIBLE[Action(bulk.action)]))


def begin_bulk(bulk: BulkAction, visible: ScheduledTaskQuerySet, *, using: str) -> BulkAction:
    """Write down a bulk action, and count its tasks among those visible to who asks; polls carry it out."""
    with atomic(using=using):
        bulk.matched = able(bulk, visible).count()
        bulk.ended_at = None if bulk.matched else bulk.created_at
        bulk.save(using=using, force_insert=True)
        announce(using=using)
    return bulk


def stop_bulk(bulk_id: UUID, *, actor: str, now: datetime, using: str) -> BulkAction:
    """Stop a bulk action after the batch that is running. One that has ended stays as it is; raises ``DoesNotExist``."""
    with atomic(using=using):
        bulk = BulkAction.objects.using(using).select_for_update(no_key=True).get(pk=bulk_id)
        if bulk.ended_at is None:
            _end(bulk, stopped_by=actor, is_stopped=True, now=now, using=using)
    return bulk


def act_in_bulk(*, now: datetime, using: str) -> int:
    """Go on with bulk actions, the oldest first, for a moment; several processes may. Locked tasks are left for later polls."""
    give_up, changed = monotonic() + A_TURN, 0
    for bulk_id in BulkAction.objects.using(using).open().order_by("pk").values_list("pk", flat=True)[:AT_ONCE_OPEN]:
        size = BATCH
        while size:
            done, size = _try(bulk_id, size, now=now, using=using)
            changed += done
            if monotonic() >= give_up:
                return changed
    return changed


def forget_bulk_actions(*, limit: int = 1000, now: datetime, using: str) -> int:
    """Delete bulk actions that ended more than thirty days ago, ``limit`` at most. Gives how many were deleted."""
    rows = BulkAction.objects.using(using)
    with atomic(using=using):
        old = rows.filter(ended_at__lt=now - KEPT).order_by("ended_at").select_for_update(skip_locked=True)
        keys = list(old.values_list("pk", flat=True)[:limit])
        return rows.filter(Among(keys)).delete()[0] if keys else 0


def _try(bulk_id: UUID, size: int, *, now: datetime, using: str) -> tuple[int, int]:
    """Do a batch: how many tasks changed; the next size, smaller if some were locked, 0 if the action is over."""
    caught: list[Exception] = []
    with catching(caught), polling(using, AT_ONCE):
        return _go_on(bulk_id, size, now=now, using=using)
    if not is_usable(using):
        raise caught[0]
    if is_passing(caught[0]):
        if size == 1:
            logger.info("The bulk action %s goes on when what it is about is not locked.", bulk_id)
        return 0, size // 2
    # Polls go on, because due tasks must not wait for it.
    logger.error("The bulk action %s cannot go on now; later polls try again.", bulk_id, exc_info=caught[0])
    return 0, 0


def _go_on(bulk_id: UUID, size: int, *, now: datetime, using: str) -> tuple[int, int]:
    rows = BulkAction.objects.using(using).open().filter(pk=bulk_id)
    bulk = rows.select_for_update(no_key=True, skip_locked=True).first()
    if bulk is None:
        return 0, 0
    policy, asker = get_policy(), _asker(bulk)
    if asker is None or not policy.allows(asker, Action(bulk.action)):
        logger.warning("The bulk action %s is stopped: who asked for it may not do so any more.", bulk.pk)
        _end(bulk, is_stopped=True, now=now, using=using)
        return 0, 0
    tasks = _next(bulk, policy.visible(ScheduledTask.objects.using(using), asker), size)
    skipped = Counter(bulk.skipped)
    chosen = _chosen(bulk, tasks, policy, asker, skipped, using)
    done = _act(_verb_of(bulk, now, using), chosen, skipped, using)
    bulk.done += done
    bulk.skipped = dict(skipped)
    bulk.place = tasks[-1].pk if tasks else bulk.place
    if is_last := len(tasks) < size:
        _end(bulk, now=now, using=using)
    else:
        bulk.save(using=using, update_fields=["done", "skipped", "place"])
    return done, 0 if is_last else size


def _end(bulk: BulkAction, *, stopped_by: str = "", is_stopped: bool = False, now: datetime, using: str) -> None:
    """Record how it ended. Tasks that it passed without seeing them had changed since it was asked for."""
    unseen = bulk.matched - bulk.looked
    if unseen > 0 and not is_stopped:
        bulk.skipped = {**bulk.skipped, CHANGED: bulk.skipped.get(CHANGED, 0) + unseen}
    bulk.is_stopped, bulk.stopped_by, bulk.ended_at = is_stopped, stopped_by, now
    bulk.save(using=using, update_fields=["done", "skipped", "place", "is_stopped", "stopped_by", "ended_at"])


def _asker(bulk: BulkAction) -> Any:
    """The person who asked, with their present rights; None: their account does not exist any more."""
    try:
        return get_user_model()._default_manager.get(pk=bulk.asker)
    except (ObjectDoesNotExist, ValidationError, ValueError):
        return None


def _next(bulk: BulkAction, visible: ScheduledTaskQuerySet, size: int) -> list[ScheduledTask]:
    tasks = able(bulk, visible)
    rest = tasks.filter(pk__gt=bulk.place) if bulk.place else tasks
    keys = list(rest.order_by("pk").values_list("pk", flat=True)[:size])
    found = read_models(ScheduledTask.objects.using(tasks.db).filter(Among(keys)))
    run_ids = {task.run_id for task in found if task.run_id is not None}
    runs = {run.pk: run for run in read_models(TimelineRun.objects.using(tasks.db).filter(Among(run_ids)))}
    for task in found:
        task.run = runs[task.run_id] if task.run_id else None
    return sorted(found, key=attrgetter("pk"))


def _chosen(
    bulk: BulkAction,
    tasks: Sequence[ScheduledTask],
    policy: TimelinePolicy,
    asker: User,
    skipped: Counter[str],
    using: str,
) -> list[UUID]:
    action, later = Action(bulk.action), set()
    if action == Action.REDRIVE:
        rows = ScheduledTask.objects.using(using).filter(previous__in=[task.pk for task in tasks])
        later = set(rows.values_list("previous_id", flat=True))
    chosen = []
    for task in tasks:
        if task.pk in later:
            skipped[CARRIED_ON] += 1
        elif action not in policy.actions(asker, task):
            skipped[FORBIDDEN] += 1
        else:
            chosen.append(task.pk)
    return chosen


def _verb_of(bulk: BulkAction, now: datetime, using: str) -> Callable[..., list[ScheduledTask]]:
    given: dict[str, Any] = {"reason": Reason.operator(bulk.reason, bulk.actor), "now": now, "using": using}
    if bulk.action == Action.MOVE:
        given |= {"at": bulk.at, "by": bulk.by}
    if bulk.action == Action.REDRIVE:
        given["spread"] = bulk.spread
    return partial(_VERBS[Action(bulk.action)], **given)


def _act(verb: Callable[..., list[ScheduledTask]], task_ids: Sequence[UUID], skipped: Counter[str], using: str) -> int:
    """Change all tasks; if one cannot be changed, try each half, so that only that one is left out."""
    if not task_ids:
        return 0
    try:
        with atomic(using=using):
            return len(verb(task_ids=task_ids))
    except tuple(kind for kind, _code in _CODES) as error:
        if len(task_ids) == 1:
            skipped[next(code for kind, code in _CODES if isinstance(error, kind))] += 1
            return 0
    middle = len(task_ids) // 2
    return sum(_act(verb, half, skipped, using) for half in (task_ids[:middle], task_ids[middle:]))
