"""Functions of every kind."""

from __future__ import annotations

import os
import time
from pathlib import Path

from django.db import connection

from tests.django_tasks.framework import task
from tests.testapp.models import Effect

seen: list[object] = []


@task
def add(one, two=0):
    """Add two numbers."""
    return one + two


@task(takes_context=True)
def tell(context, word):
    result = context.task_result
    seen.append((context.attempt, result.status, result.worker_ids))
    return [word, context.attempt, result.id]


@task(priority=7, queue_name="mail")
def send(address):
    return {"to": address, "in_transaction": connection.in_atomic_block}


@task(backend="patient")
def stumble(times):
    """Fail so many times, then succeed."""
    seen.append("stumbled")
    if len(seen) <= times:
        raise ValueError(f"not yet: {len(seen)}")
    return "at last"


@task
def note(name):
    """Note who came; of nobody it is undone, if there is a transaction."""
    Effect.objects.create(name=name)
    if name == "nobody":
        raise ValueError("nobody came")


@task
def fail():
    raise ValueError("never")


@task
def unwritable():
    return {1, 2}


@task
def enter(name):
    """Note who came, and wait to be let go: for a process that is killed."""
    folder = Path(os.environ["TEST_FOLDER"])
    Effect.objects.create(name=name)
    (folder / "entered").touch()
    while not (folder / "go").exists():
        time.sleep(0.05)
    return name
