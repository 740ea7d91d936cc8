"""One process that polls and runs, with no broker between: for development and small sites."""

from timeline.worker.loop import Worker

__all__ = ["Worker"]
