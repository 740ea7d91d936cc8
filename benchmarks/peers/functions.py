"""The jobs as functions of Django's own tasks, for each backend the same. To be imported after Django is set up."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

import django
from django.db import connection, transaction
from django.utils import timezone

from benchmarks.peers import by_orm, jobs
from benchmarks.peers.adapter import LATER

task = import_module("django.tasks" if django.VERSION >= (6, 0) else "django_tasks").task


@task
def nothing(number: int) -> None:
    """Do nothing."""


@task
def entity(number: int) -> None:
    """Count the job's own entity up."""
    by_orm.entity(number)


@task
def count(number: int) -> None:
    """Count the entity up, on the connection Django keeps."""
    with connection.cursor() as cursor:
        cursor.execute(jobs.COUNT, [jobs.entity_of(number)])


@task
def brief(number: int) -> None:
    """Wait for something near."""
    jobs.brief(number)


@task
def long(number: int) -> None:
    """Wait for something far."""
    jobs.long(number)


@task
def pick_up(number: int, sent: float) -> None:
    """Tell how long it waited."""
    jobs.pick_up(number, sent)


JOBS = {"nothing": nothing, "entity": entity, "count": count, "brief": brief, "long": long}


def schedule_one(number: int) -> None:
    """Enqueue one that is due much later."""
    nothing.using(run_after=timezone.now() + LATER).enqueue(number)


def enqueue(job: str, numbers: Iterable[int]) -> None:
    """Enqueue some that are due now, in one transaction."""
    with transaction.atomic():
        for number in numbers:
            JOBS[job].enqueue(number)
