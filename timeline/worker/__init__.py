"""Processes that poll and run: the embedded worker with no broker between, and what Celery's tasks are made of."""

from timeline.worker.embedded import Worker
from timeline.worker.poller import Poller

__all__ = ["Poller", "Worker"]
