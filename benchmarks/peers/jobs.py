"""
The jobs, the same for all: nothing, one UPDATE, two sleeps, four steps, and one that tells how long it waited.

The UPDATE is of one of a thousand rows, by a cursor; or of a row that no other job is about, by the ORM the peer's users have.
"""

from __future__ import annotations

import os
import time
from functools import cache

import psycopg

ENTITIES = 1_000
BRIEF, LONG = 0.005, 0.2  # Seconds.
STEPS = 4  # Of a job that takes any.
HANGS, HANGING = 2, 3600.0  # The step, from 0, in which one hangs that is to be killed; seconds.
OF_THEIR_OWN = frozenset(
    {"entity", "steps", "step_updates", "steps_async", "steps_killed"}
)  # Jobs that are each about another member.

TABLES = """
CREATE TABLE IF NOT EXISTS bench_entity (id integer PRIMARY KEY, counter integer NOT NULL) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS bench_member (id integer PRIMARY KEY, email text NOT NULL, counter integer NOT NULL);
CREATE TABLE IF NOT EXISTS bench_pickup (number integer NOT NULL, seconds double precision NOT NULL);
INSERT INTO bench_entity SELECT number, 0 FROM generate_series(0, 999) AS number ON CONFLICT DO NOTHING;
"""
# One for each job that is about an entity of its own.
MEMBERS = """
INSERT INTO bench_member SELECT number, number || '@example.com', 0 FROM generate_series(0, %s - 1) AS number
"""
COUNT = "UPDATE bench_entity SET counter = counter + 1 WHERE id = %s"
COUNT_MEMBER = "UPDATE bench_member SET counter = counter + 1 WHERE id = %s"
# Locked in one order: two calls may be about the same entities.
COUNT_MANY = """
WITH given AS (SELECT id, count(*) AS times FROM unnest(%s::integer[]) AS id GROUP BY id),
held AS MATERIALIZED (SELECT id FROM bench_entity WHERE id IN (SELECT id FROM given) ORDER BY id FOR NO KEY UPDATE)
UPDATE bench_entity SET counter = counter + given.times FROM held JOIN given USING (id) WHERE bench_entity.id = held.id
"""
# What is noted here need not be on the disk: the commit should not hold up the next job.
PICKED_UP = """
WITH quiet AS (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO bench_pickup SELECT %s::integer, %s::double precision FROM quiet
"""
ENTERED = "INSERT INTO bench_pickup VALUES (%s, %s)"


def entity_of(number: int, job: str = "") -> int:
    """The entity that a job is about."""
    return number if job in OF_THEIR_OWN else number % ENTITIES


def done(step: int) -> dict[str, object]:
    """What a step gives, to be kept."""
    return {"step": step, "path": f"/invoices/{step}"}


@cache
def connection() -> psycopg.Connection:
    """A connection of this process, for jobs of peers that lend none."""
    return psycopg.connect(os.environ["BENCHMARK_DATABASE_URL"], autocommit=True)


def nothing(number: int) -> None:
    """Do nothing."""


def count(number: int) -> None:
    """Count the entity up."""
    connection().execute(COUNT, [entity_of(number)])


def brief(number: int) -> None:
    """Wait for something near."""
    time.sleep(BRIEF)


def long(number: int) -> None:
    """Wait for something far."""
    time.sleep(LONG)


def pick_up(number: int, sent: float) -> None:
    """Tell how long it was from the call that scheduled it until now. Both are read from this machine's clock."""
    connection().execute(PICKED_UP, [number, time.time() - sent])
