"""Ours through Celery: a poller of its own, workers over Redis."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from benchmarks.peers.adapter import Setting
from benchmarks.peers.timeline_site import MODES, Nowhere, TimelineAdapter
from benchmarks.settings import QUEUE_PREFIX

LET_GO = """
UPDATE timeline_scheduledtask SET state = 'cancelled', seq = seq + 1, lease_expires_at = NULL, reason_code = 'operator',
    finished_at = now() WHERE state = 'pending'
"""
QUEUES = (f"{QUEUE_PREFIX}.default", f"{QUEUE_PREFIX}-poll")


class Peer(TimelineAdapter):
    """Celery's workers, and who sends them work."""

    title = "timeline, Celery workers"
    ready = "ready."
    settings = (
        MODES,
        Setting(
            "worker", "-c 1 --without-gossip --without-mingle", "one process for handlers, as the embedded worker has"
        ),
        Setting("poller", "timeline_poll", "sends what is due, woken by NOTIFY"),
        Setting("CONN_MAX_AGE", "None", "with CELERY_DB_REUSE_MAX 1000: workers would connect anew for each message"),
    )
    helpers = {"poller": "polls every"}
    notes = "As with the embedded worker; tasks go through Redis, which may lose them: the rows are the truth."

    def __init__(self) -> None:
        super().__init__()
        from project.celery import app

        app.set_default()
        self._app: Celery = app
        self._memory: dict[str, Any] = {}  # A poller keeps one: most of its polls need not ask what the clock begins.

    def work(self) -> None:
        options = ["-Q", QUEUES[0], "-c", "1", "--without-gossip", "--without-mingle", "-n", f"{os.getpid()}@%h"]
        self._app.worker_main(["worker", *options, "-l", "INFO"])

    def help(self, helper: str) -> None:
        call_command("timeline_poll")

    def fill(self, first: int, last: int) -> None:
        """What claims have left would be sent again by polls, which are to find nothing."""
        self._let_go()
        super().fill(first, last)

    def poll(self) -> None:
        self._dispatch()

    def make_due(self, many: int) -> None:
        """Few messages wait at a time, of a kind that nobody has run yet with a task each: let those of the last claim go."""
        from timeline.dispatch.worker_signs import keep_paces

        keep_paces({"work.nothing": 0.001}, using="default")
        self._let_go()
        super().make_due(many)

    def claim(self, many: int) -> int:
        return self._dispatch()

    def remove(self) -> None:
        with self._app.connection_for_write() as connection:
            channel = connection.default_channel
            for queue in QUEUES:
                self._app.amqp.queues[queue](channel).declare()  # What a channel has not seen it does not delete.
                channel.queue_purge(queue)
                channel.queue_delete(queue)

    def _let_go(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(LET_GO)

    def _dispatch(self) -> int:
        from timeline.dispatch.poll import dispatch

        return dispatch(sender=Nowhere(), memory=self._memory, now=timezone.now(), using="default").sent
