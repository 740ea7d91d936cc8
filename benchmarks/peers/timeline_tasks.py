"""Ours as a backend of Django's own tasks, with no broker: ``manage.py timeline_worker``."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from django.core.management import call_command

from benchmarks.peers import timeline_embedded
from benchmarks.peers.adapter import Adapter, NotOffered, Setting

THREADS = int(os.environ.get("BENCHMARK_THREADS", "1"))
os.environ.setdefault("BENCHMARK_TASKS", "apart")  # Or "shared": as ``atomic`` in the options of the backend.


class Peer(timeline_embedded.Peer):
    """The same workers."""

    title = "timeline, django.tasks"
    jobs = Adapter.jobs
    settings = (Setting("threads", THREADS, "functions that commit by themselves wait for the disk"),)
    together = False
    notes = "A worker that dies is no failure: the next one runs the task. A log row for each attempt."

    def __init__(self) -> None:
        super().__init__()
        self._functions: Any = import_module("benchmarks.peers.functions")

    def work(self) -> None:
        call_command("timeline_worker", threads=THREADS)

    def schedule_one(self, number: int) -> None:
        self._functions.schedule_one(number)

    def schedule_many(self, numbers: Iterable[int]) -> None:
        raise NotOffered("no call for many")

    def enqueue(self, job: str, numbers: Iterable[int]) -> None:
        self._functions.enqueue(job, numbers)

    def feed(self, number: int, sent: float) -> None:
        self._functions.pick_up.enqueue(number, sent)

    def cancel(self, entity: int, kept: list[object]) -> int:
        raise NotOffered("no way to cancel")
