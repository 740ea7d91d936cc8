"""
The tasks that Celery runs: ``timeline.poll``, ``timeline.run`` and ``timeline.maintain``. This needs the extra ``celery``.

Celery only carries messages about work that is due now. A message has the ids of tasks and the token of a claim. It is
acknowledged before its tasks run, has no result and no time of its own, and Celery never retries it: the rows are the truth,
and the next poll sends lost messages again.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from typing import Any, Final
from uuid import UUID

from celery import shared_task
from django.db import DEFAULT_DB_ALIAS

from timeline.clocks import story_now
from timeline.conf import get_settings
from timeline.dispatch.acting_in_bulk import forget_bulk_actions
from timeline.dispatch.claiming import ClaimedBatch, hand_back
from timeline.dispatch.dispatching import dispatch
from timeline.exceptions import BrokerUnavailable, NotRunHere
from timeline.operations.answering import forget_answers
from timeline.operations.identifying import confirm_site
from timeline.operations.pruning import prune
from timeline.operations.recurring import Ahead
from timeline.operations.rolling_up import forget_figures, roll_up
from timeline.operations.sweeping import sweep
from timeline.signals import pruning
from timeline.store.edges import see_edges
from timeline.tasks.connecting import beside, renew
from timeline.tasks.keeping import keeper_of
from timeline.tasks.reaching import persist
from timeline.tasks.sending import CelerySender
from timeline.tasks.stopping import is_stopping
from timeline.worker.batch import run_batch
from timeline.worker.heartbeat import Heartbeat
from timeline.worker.names import worker_name
from timeline.worker.pace import Pace

logger = logging.getLogger("timeline")

OPTIONS: Final[dict[str, Any]] = {
    "acks_late": False,
    "ignore_result": True,
    "max_retries": 0,
    "serializer": "json",
    "store_errors_even_if_ignored": False,
}
MAINTAINED_AT_ONCE: Final = 10  # Batches of each kind that are deleted in one call; the next call deletes more.
ROLLED_UP_AT_ONCE: Final = 100  # Batches of the log that are counted in one call.
SWEPT_AT_ONCE: Final = 100  # Batches that are swept in one call.

_sender = CelerySender()
_ahead: Final[dict[str, Ahead]] = defaultdict(Ahead)  # For each database, in this process of the pool.
_pace = Pace()  # The pace of this process of the pool.


@shared_task(name="timeline.poll", **OPTIONS)
def poll(using: str = DEFAULT_DB_ALIAS) -> None:
    """
    Send due tasks on their way. Several processes may do so at once.

    Args:
        using: Database alias.
    """
    renew(using)
    try:
        dispatch(sender=_sender, wait=True, ahead=_ahead[using], now=story_now(using), using=using)
    except BrokerUnavailable as error:
        logger.warning("%s", error)
    except NotRunHere as error:
        logger.error("%s", error.in_english())


@shared_task(name="timeline.run", bind=True, **OPTIONS)
def run(self: Any, task_ids: list[str], token: str, using: str = DEFAULT_DB_ALIAS) -> None:
    """
    Run a batch of claimed tasks. A worker that is told to stop gives back tasks that it has not started.

    If the database does not answer, this waits for it; if it stays away, the message goes back to its queue.

    Args:
        task_ids: Ids of the rows, as text, in the order in which they should run.
        token: The token of the claim; rows that are not claimed with it any more are left alone.
        using: Database alias.
    """
    batch = ClaimedBatch("", "", UUID(token), [UUID(task_id) for task_id in task_ids])
    if persist(lambda: _run(batch, using), using=using, stopping=is_stopping):
        return
    queue = (self.request.delivery_info or {}).get("routing_key")
    try:
        if queue:
            kwargs = {"task_ids": task_ids, "token": token, "using": using}
            _sender.publish("timeline.run", kwargs, queue=queue)
    except BrokerUnavailable as error:
        logger.warning(
            "A message is lost, and sent again by a later poll: neither database nor broker is there. %s", error
        )


def _run(batch: ClaimedBatch, using: str) -> None:
    renew(using)
    try:
        confirm_site(using=using)
        see_edges(using=using)
    except NotRunHere as error:
        logger.error("%s", error.in_english())
        return
    name, keeper = worker_name(), keeper_of(using)
    heartbeat = Heartbeat(using, stopping=is_stopping, pace=_pace, keeper=keeper, worker=name)
    with heartbeat as watch, beside(using) as side_thread:
        watch.give_sign()
        run_batch(batch, watch=watch, using=using, worker=name, side_thread=side_thread)
    _pace.keep(using=using)
    if is_stopping():
        hand_back([batch], using=using)


@shared_task(name="timeline.maintain", **OPTIONS)
def maintain(using: str = DEFAULT_DB_ALIAS) -> None:
    """
    Sweep for changes that no signal saw. Delete answers of the API that are older than a day, and bulk actions that ended more
    than a month ago. Delete runs and tasks that ended longer ago than ``TIMELINE["RETENTION"]``, if that is set. Count the log
    into figures by the hour, and delete old figures.

    Args:
        using: Database alias.
    """
    renew(using)
    _prune(using)
    _forget(using)
    try:
        for _ in range(SWEPT_AT_ONCE):
            if not sweep(now=story_now(using), using=using).left:
                break
        _roll_up(using)
    except NotRunHere as error:
        logger.error("%s", error.in_english())


def _roll_up(using: str) -> None:
    confirm_site(using=using)
    for _ in range(ROLLED_UP_AT_ONCE):
        if not roll_up(using=using):
            break
    forget_figures(now=story_now(using), using=using)


def _prune(using: str) -> None:
    retention = get_settings().RETENTION
    if retention is None:
        return
    before = story_now(using) - retention
    for _ in range(MAINTAINED_AT_ONCE):
        others = sum(int(count or 0) for _, count in pruning.send(None, using=using, ended_before=before))
        if not any(prune(ended_before=before, using=using)) and not others:
            break


def _forget(using: str) -> None:
    for _ in range(MAINTAINED_AT_ONCE):
        if not forget_answers(using=using):
            break
    forget_bulk_actions(now=story_now(using), using=using)
