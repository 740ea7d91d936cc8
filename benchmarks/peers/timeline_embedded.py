"""Ours with no broker: ``manage.py timeline_worker``."""

from __future__ import annotations

from typing import Any

from django.core.management import call_command

from benchmarks.peers.adapter import NotOffered, Setting
from benchmarks.peers.timeline_site import MODES, TimelineAdapter

THREADS = 1


class Peer(TimelineAdapter):
    """Workers that poll and run."""

    title = "timeline, embedded worker"
    slots = THREADS * TimelineAdapter.slots
    settings = (
        MODES,
        Setting("threads", THREADS, "what waits is async; of threads that compute, one goes on at a time"),
    )
    ready = "polls every"
    notes = "Exactly once for what an atomic handler writes here; a log row for each step; guards and entity read at each run."

    def __init__(self) -> None:
        super().__init__()
        self._worker: Any = None

    def work(self) -> None:
        call_command("timeline_worker", threads=THREADS)

    def poll(self) -> None:
        if self._worker is None:
            from timeline.worker import Worker

            self._worker = Worker("default", "benchmark")
        self._worker.poll()

    def claim(self, many: int) -> int:
        raise NotOffered("no broker, no claim: it starts what it runs")
