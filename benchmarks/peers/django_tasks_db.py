"""django-tasks-db: the database backend of Django's own tasks."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from django.core.management import call_command
from django.db import connection, connections, transaction

from benchmarks.peers.adapter import Adapter, Setting, one_by_one
from benchmarks.peers.django_site import set_up

INTERVAL = 0.05
FILL = """
INSERT INTO django_tasks_database_dbtaskresult (
    id, status, enqueued_at, args_kwargs, priority, task_path, worker_ids, queue_name, backend_name, run_after,
    exception_class_path, traceback
)
SELECT gen_random_uuid(), 'READY', now(), jsonb_build_object('args', jsonb_build_array(number / 10), 'kwargs', '{}'::jsonb),
    0, 'benchmarks.peers.functions.nothing', '[]', 'default', 'default', now() + interval '30 days', '', ''
FROM generate_series(%(first)s::int, %(last)s::int - 1) AS number
"""

set_up("django_tasks_db", TASKS={"default": {"BACKEND": "django_tasks_db.DatabaseBackend"}})
functions = import_module("benchmarks.peers.functions")


class Peer(Adapter):
    """Its own ``db_worker``."""

    title = "django-tasks-db"
    package = "django-tasks-db"
    settings = (
        Setting(
            "interval", f"{INTERVAL} s", "it is not woken; where there was nothing it looks again sooner than after 1 s"
        ),
        Setting("CONN_MAX_AGE", "None", "it asks for stale connections to be closed before each job"),
        Setting("verbosity", 0, "a line for each job is not what is measured"),
    )
    ready = "db_worker"
    gate = "django_tasks_database_dbtaskresult"
    tables = ("django_tasks_database_dbtaskresult",)
    completed = "SELECT count(*) FROM django_tasks_database_dbtaskresult WHERE status = 'SUCCESSFUL'"
    clear = "TRUNCATE django_tasks_database_dbtaskresult"
    notes = "At most once: a job whose worker dies stays RUNNING. No retry, no log of steps."

    def install(self) -> None:
        call_command("migrate", verbosity=0)

    def schedule_one(self, number: int) -> None:
        functions.schedule_one(number)

    def enqueue(self, job: str, numbers: Iterable[int]) -> None:
        functions.enqueue(job, numbers)

    def feed(self, number: int, sent: float) -> None:
        functions.pick_up.enqueue(number, sent)

    def work(self) -> None:
        print("db_worker", flush=True)
        call_command("db_worker", interval=INTERVAL, startup_delay=False, verbosity=0, reload=False)

    def fill(self, first: int, last: int) -> None:
        with connection.cursor() as cursor:
            cursor.execute(FILL, {"first": first, "last": last})

    def poll(self) -> None:
        self._take()

    def claim(self, many: int) -> int:
        return one_by_one(self._take, many)

    def close(self) -> None:
        connections.close_all()

    def _take(self) -> bool:
        """As the worker does: one at a time."""
        results = import_module("django_tasks_db.models").DBTaskResult.objects
        ready = results.ready().filter(backend_name="default", queue_name__in=["default"])
        with transaction.atomic():
            if (found := ready.get_locked()) is not None:
                found.claim("benchmark")
        return found is not None
