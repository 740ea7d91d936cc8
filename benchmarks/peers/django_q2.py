"""Django Q2: clusters of processes, with the database as broker."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from django.core.management import call_command
from django.db import connection, connections, transaction
from django.utils import timezone

from benchmarks.peers.adapter import LATER, Adapter, NotOffered, Setting
from benchmarks.peers.django_site import set_up

BULK, POLL = 50, 0.05
SETTINGS = {
    "name": "bench",
    "orm": "default",
    "workers": 1,
    "bulk": BULK,
    "queue_limit": 2 * BULK,
    "poll": POLL,
    "timeout": 60,
    "retry": 120,
    "recycle": 1_000_000,
    "save_limit": 0,
    "log_level": "WARNING",
}
FILL = """
INSERT INTO django_q_schedule (func, schedule_type, repeats, next_run, args, kwargs)
SELECT 'benchmarks.peers.jobs.nothing', 'O', -1, now() + interval '30 days', format('(%%s,)', number / 10), '{}'
FROM generate_series(%(first)s::int, %(last)s::int - 1) AS number
"""

logging.getLogger("django-q").addHandler(logging.NullHandler())
set_up("django_q", Q_CLUSTER=SETTINGS)

from django_q.brokers.orm import ORM  # noqa: E402 (Django is set up first)
from django_q.models import Schedule  # noqa: E402
from django_q.scheduler import scheduler  # noqa: E402
from django_q.tasks import async_task, schedule  # noqa: E402


class Peer(Adapter):
    """Its own ``qcluster``: beside the process for jobs, each has one that fetches, one that saves, and one that watches."""

    title = "Django Q2"
    package = "django-q2"
    settings = (
        Setting("workers", 1, "processes for jobs in each cluster; a cluster is what is counted here as a worker"),
        Setting("bulk", BULK, "jobs fetched at a time"),
        Setting("queue_limit", 2 * BULK, "room for what is fetched"),
        Setting("poll", f"{POLL} s", "where there was nothing it looks again sooner than after 0.2 s"),
        Setting("save_limit", 0, "keep every result, as the others do; pruning at each save costs more"),
        Setting("recycle", 1_000_000, "no new process in the middle"),
    )
    ready = "qcluster"
    gate = "django_q_ormq"
    tables = ("django_q_ormq", "django_q_task", "django_q_schedule")
    completed = "SELECT count(*) FROM django_q_task WHERE success"
    clear = "TRUNCATE django_q_ormq, django_q_task, django_q_schedule"
    notes = "At least once; jobs and results are pickled; what is due later is looked at every 30 s. No log of steps."

    def install(self) -> None:
        call_command("migrate", verbosity=0)

    def schedule_one(self, number: int) -> None:
        schedule("benchmarks.peers.jobs.nothing", number, schedule_type="O", next_run=timezone.now() + LATER)

    def enqueue(self, job: str, numbers: Iterable[int]) -> None:
        with transaction.atomic():
            for number in numbers:
                async_task(f"benchmarks.peers.{'by_orm' if job == 'entity' else 'jobs'}.{job}", number)

    def feed(self, number: int, sent: float) -> None:
        async_task("benchmarks.peers.jobs.pick_up", number, sent)

    def work(self) -> None:
        print("qcluster", flush=True)
        connections.close_all()
        call_command("qcluster", verbosity=0)

    def fill(self, first: int, last: int) -> None:
        with connection.cursor() as cursor:
            cursor.execute(FILL, {"first": first, "last": last})

    def make_due(self, many: int) -> None:
        for number in range(many):
            schedule("benchmarks.peers.jobs.nothing", number, schedule_type="O", next_run=timezone.now())

    def poll(self) -> None:
        scheduler(ORM("bench"))

    def claim(self, many: int) -> int:
        before = Schedule.objects.count()
        scheduler(ORM("bench"))
        return before - Schedule.objects.count()

    def cancel(self, entity: int, kept: list[object]) -> int:
        raise NotOffered("rows of schedules can be deleted, and none knows of an entity")

    def close(self) -> None:
        connections.close_all()
