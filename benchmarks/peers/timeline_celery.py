"""Ours through Celery: a poller of its own, workers over Redis."""

from __future__ import annotations

from celery import Celery
from django.core.management import call_command
from django.utils import timezone

from benchmarks.peers.adapter import Setting
from benchmarks.peers.timeline_site import Nowhere, TimelineAdapter
from benchmarks.settings import QUEUE_PREFIX

QUEUES = (f"{QUEUE_PREFIX}.default", f"{QUEUE_PREFIX}-poll")


class Peer(TimelineAdapter):
    """Celery's workers, and who sends them work."""

    title = "timeline, Celery workers"
    ready = "ready."
    settings = (
        Setting(
            "worker", "-c 1 --without-gossip --without-mingle", "one process for handlers, as the embedded worker has"
        ),
        Setting("poller", "timeline_poll", "sends what is due"),
        Setting("poll worker", "-Q …-poll -c 1", "hears hints: what is due at once is sent at once"),
    )
    helpers = {"poller": "polls every", "poll_worker": "ready."}
    notes = "As with the embedded worker; tasks go through Redis, which may lose them: the rows are the truth."

    def __init__(self) -> None:
        super().__init__()
        from project.celery import app

        app.set_default()
        self._app: Celery = app

    def work(self) -> None:
        self._celery(QUEUES[0])

    def help(self, helper: str) -> None:
        if helper == "poller":
            call_command("timeline_poll")
        else:
            self._celery(QUEUES[1])

    def poll(self) -> None:
        self._dispatch()

    def claim(self, many: int) -> int:
        return self._dispatch()

    def remove(self) -> None:
        with self._app.connection_for_write() as connection:
            channel = connection.default_channel
            for queue in QUEUES:
                self._app.amqp.queues[queue](channel).declare()  # What a channel has not seen it does not delete.
                channel.queue_purge(queue)
                channel.queue_delete(queue)

    def _celery(self, queue: str) -> None:
        options = ["-Q", queue, "-c", "1", "--without-gossip", "--without-mingle", "-n", f"{queue}-%i@%h", "-l", "INFO"]
        self._app.worker_main(["worker", *options])

    def _dispatch(self) -> int:
        from timeline.operations.dispatching import dispatch

        return dispatch(sender=Nowhere(), now=timezone.now(), using="default").sent
