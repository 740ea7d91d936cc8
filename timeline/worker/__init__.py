"""Processes that poll and run: the embedded worker, which needs no broker, and the parts that Celery's tasks use."""

from timeline.worker.embedded import Worker
from timeline.worker.loop import Poller

__all__ = ["Poller", "Worker"]
