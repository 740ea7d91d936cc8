"""What both of ours share: the site of the benchmarks, set up in this process, and the verbs of ``timeline.shortcuts``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import timedelta
from importlib import import_module
from typing import Any

import django
import psycopg
from django.core.management import call_command
from django.db import connection, connections, transaction
from django.utils import timezone

from benchmarks.peers.adapter import LATER, Adapter, Setting, chunks
from benchmarks.peers.jobs import entity_of
from timeline.definition.handlers import SIDE_BY_SIDE
from timeline.ids import uuid7

MODES = Setting(
    "atomic",
    '"shared" where a column says so, False for no-op and sleeps',
    "what only writes here may share a transaction, and what writes nothing needs none",
)
USERS = 20_000
NOW = timedelta(0)
SIGN_UP = """
INSERT INTO accounts_user (
    id, email, website, password, is_superuser, is_active, is_staff, signed_up_at, trial_ends_at
)
SELECT number, number || '@example.com', '', '', false, true, false, now(), now() FROM generate_series(0, %s - 1) AS number
"""

FILL = """
INSERT INTO timeline_scheduledtask (
    id, task_key, occurrence, revision, state, seq, priority, queue, nominal_at, scheduled_at, anchor, definition_hash,
    payload, attempt, failures, lost, max_attempts, worker, error, reason_code, reason, actor, created_at,
    entity_label, entity_id
)
SELECT gen_random_uuid(), 'work.nothing', number::text, 1, 'scheduled', 0, 0, 'default', due, due, '', '',
    '{}', 0, 0, 0, 5, '', '', '', '', '', now(), 'accounts.user', (number / 10)::text
FROM generate_series(%(first)s::int, %(last)s::int - 1) AS number
CROSS JOIN LATERAL (SELECT now() + interval '30 days' + number * interval '1 second' AS due) AS time
"""

OF_MEMBERS = {
    "entity": "membership.count",
    "steps": "stepping.steps",
    "step_updates": "stepping.step_updates",
    "steps_async": "stepping.steps_async",
    "steps_killed": "stepping.steps_killed",
}
LOCK = "SELECT id FROM {table} WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE"
INSERT = """
INSERT INTO timeline_scheduledtask (
    id, task_key, occurrence, revision, state, seq, priority, queue, nominal_at, scheduled_at, anchor, definition_hash,
    payload, attempt, failures, lost, max_attempts, worker, error, reason_code, reason, actor, created_at,
    entity_label, entity_id
)
SELECT id, %(key)s, id::text, 1, %(state)s, 0, 0, 'default', %(due)s, %(due)s, '', '', %(payload)s::jsonb, 0, 0, 0, 5,
    '', '', '', '', '', now(), %(label)s, entity
FROM unnest(%(ids)s::uuid[], %(entities)s::text[]) AS given(id, entity)
ON CONFLICT DO NOTHING
"""


class Nowhere:
    """A broker that takes all there is, and keeps nothing."""

    def connect(self) -> None:
        """Connects at once."""

    def send(self, batch: Any, *, using: str) -> None:
        """Is sent."""


class TimelineAdapter(Adapter):
    """Everything but the workers."""

    package = "django-entity-timeline"
    jobs = (*Adapter.jobs, "shared", "many")
    slots = SIDE_BY_SIDE
    gate = "timeline_scheduledtask"
    tables = ("timeline_scheduledtask", "timeline_logentry", "timeline_timelinerun", "timeline_event")
    completed = "SELECT count(*) FROM timeline_scheduledtask WHERE state = 'completed'"
    clear = f"TRUNCATE {', '.join(tables)} CASCADE"
    together = True

    def __init__(self) -> None:
        super().__init__()
        django.setup()
        self._verbs = import_module("timeline.shortcuts")
        self._users: dict[int, Any] = {}

    def install(self) -> None:
        call_command("migrate", verbosity=0)
        with connection.cursor() as cursor:
            cursor.execute(SIGN_UP, [USERS])

    def schedule_one(self, number: int) -> None:
        self._schedule("nothing", number, timezone.now() + LATER)

    def schedule_many(self, numbers: Iterable[int]) -> None:
        """One event for each user, which starts a run of three tasks; only the tasks count, event and run are written too."""
        users = [self._user(number) for number in sorted({number // 3 for number in numbers})]
        if hasattr(self._verbs, "emit_many"):
            self._verbs.emit_many("user.enrolled", users)
            return
        for some in chunks(users):
            with transaction.atomic():
                for user in some:
                    self._verbs.emit("user.enrolled", user)

    def enqueue(self, job: str, numbers: Iterable[int]) -> None:
        """By SQL: there is no shortcut for many that are due at once, and this is not what is measured."""
        with psycopg.connect(self.url) as database:
            for some in chunks(numbers):
                self.insert(database, job, some)

    def feed(self, number: int, sent: float) -> None:
        self._schedule("pick_up", number, timezone.now(), number=number, sent=sent)

    def fill(self, first: int, last: int) -> None:
        with connection.cursor() as cursor:
            cursor.execute(FILL, {"first": first, "last": last})

    def cancel(self, entity: int, kept: list[object]) -> int:
        user = self._user(entity % USERS)  # Rows there are of more than that.
        return len(self._verbs.cancel_all(user, reason="paid"))

    def close(self) -> None:
        connections.close_all()

    def insert(
        self, database: psycopg.Connection, job: str, numbers: list[int], later: timedelta = NOW, **payload: object
    ) -> None:
        """Write rows as ``schedule`` does, in one transaction: the entities locked, then the tasks."""
        entities = [entity_of(number, job) for number in numbers]
        key, label, table = (
            (OF_MEMBERS[job], "benchmarks.member", "bench_member")
            if job in OF_MEMBERS
            else (f"work.{job}", "accounts.user", "accounts_user")
        )
        given = {
            "key": key,
            "label": label,
            "state": "scheduled" if later else "available",
            "due": timezone.now() + later,
            "payload": json.dumps(payload),
            "ids": [uuid7() for _ in numbers],
            "entities": [str(entity) for entity in entities],
        }
        with database.transaction():
            database.execute(LOCK.format(table=table), [sorted(set(entities))])
            database.execute(INSERT, given)

    def _schedule(self, job: str, about: int, at: Any, **payload: object) -> None:
        self._verbs.schedule(f"work.{job}", self._user(entity_of(about)), at=at, payload=payload)

    def _user(self, number: int) -> Any:
        if not self._users:
            self._users = import_module("project.accounts.models").User.objects.in_bulk()
        return self._users[number]
