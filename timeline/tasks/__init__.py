"""
The Celery tasks ``timeline.poll``, ``timeline.run`` and ``timeline.maintain``. They need the extra ``celery``.

A message has ids of tasks and the token of a claim. It is acknowledged before its tasks run, has no result, and is never
retried by Celery: the rows are the truth, and the next poll sends lost messages again.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from typing import Any, Final
from uuid import UUID

from celery import shared_task
from celery.exceptions import SoftTimeLimitExceeded
from django.db import DEFAULT_DB_ALIAS

from timeline.clocks import story_now
from timeline.dispatch.claim import ClaimedBatch, hand_back
from timeline.dispatch.poll import dispatch
from timeline.engine.failures import OUT_OF_TIME
from timeline.exceptions import BrokerUnavailable, NotRunHere
from timeline.hooks import hooks
from timeline.operations.repeated_requests import forget_answers
from timeline.store.site import confirm_site
from timeline.tasks.broker import CelerySender
from timeline.tasks.connections import beside, keeper_of, persist, renew
from timeline.tasks.shutdown import is_killed, is_stopping
from timeline.worker.batch import run_batch
from timeline.worker.heartbeat import Heartbeat
from timeline.worker.process import PaceOfKinds, worker_name

logger = logging.getLogger("timeline")

OPTIONS: Final[dict[str, Any]] = {
    "acks_late": False,
    "ignore_result": True,
    "max_retries": 0,
    "serializer": "json",
    "store_errors_even_if_ignored": False,
}
MAINTAINED_AT_ONCE: Final = 10  # Batches of answers that are deleted in one call; the next call deletes more.

_sender = CelerySender()
_memory: Final[dict[str, dict[str, Any]]] = defaultdict(dict)  # For each database, in this process of the pool.
_pace = PaceOfKinds()  # The pace of this process of the pool.

OUT_OF_TIME.append(SoftTimeLimitExceeded)


@shared_task(name="timeline.poll", **OPTIONS)
def poll(using: str = DEFAULT_DB_ALIAS) -> None:
    """Send due tasks on their way. Several processes may do so at once."""
    renew(using)
    try:
        dispatch(sender=_sender, wait=True, memory=_memory[using], now=story_now(using), using=using)
    except BrokerUnavailable as error:
        logger.warning("%s", error)
    except NotRunHere as error:
        logger.error("%s", error.in_english())


@shared_task(name="timeline.run", bind=True, **OPTIONS)
def run(self: Any, task_ids: list[str], token: str, using: str = DEFAULT_DB_ALIAS) -> None:
    """
    Run claimed tasks, in this order; rows that have another claim's token are left alone.

    A worker that stops gives back tasks it has not started. If the database stays away, the message goes back to its queue.
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
        for prepare in hooks().batches:
            prepare(using)
    except NotRunHere as error:
        logger.error("%s", error.in_english())
        return
    name, keeper = worker_name(), keeper_of(using)
    heartbeat = Heartbeat(using, stopping=is_stopping, pace=_pace, keeper=keeper, worker=name, killed=is_killed)
    try:
        with heartbeat as watch, beside(using) as side_thread:
            watch.give_sign()
            run_batch(batch, watch=watch, using=using, worker=name, side_thread=side_thread)
    except Exception:
        raise
    except BaseException:  # A handler ends this process.
        if not is_killed():
            hand_back([batch], using=using)
        raise
    _pace.keep(using=using)
    if is_stopping():
        hand_back([batch], using=using)


@shared_task(name="timeline.maintain", **OPTIONS)
def maintain(using: str = DEFAULT_DB_ALIAS) -> None:
    """
    Sweep for changes that no signal saw, delete what is old, and count the log into figures by the hour.

    Old are answers of the API after a day, bulk actions a month after their end, and runs and tasks after
    ``TIMELINE["RETENTION"]``, if that is set.
    """
    renew(using)
    for _ in range(MAINTAINED_AT_ONCE):
        if not forget_answers(using=using):
            break
    for work in hooks().maintains:
        try:
            work(using)
        except NotRunHere as error:
            logger.error("%s", error.in_english())
            return
