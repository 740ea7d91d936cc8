"""
What an old snapshot costs, on PostgreSQL: a session left idle in a transaction, because of which nothing dead is cleared away.

Two databases of one server, by turns: in each round two embedded workers run a lot of tasks that do nothing in the first, which
is free, and then in the second, beside a snapshot that was taken before the first round. Prints tasks a second, their ratio,
and the dead rows; with --statements, pages read by each kind of statement. Figures of one machine at one moment.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from statistics import geometric_mean
from time import perf_counter, sleep
from typing import Any, Final

import psycopg

from benchmarks.databases import own_database
from benchmarks.herd import INSERT, old_snapshot
from benchmarks.throughput import process, wait_for

WARM_UP: Final = 0.1  # Of a lot: workers learn their pace.
LOOK: Final = 0.02  # Seconds.
# Due, started, completed: a task has three entries in the log. To count tasks would read ever more dead rows.
ENTRIES: Final = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM timeline_logentry_id_seq"
EACH: Final = 3
PEOPLE: Final = """
INSERT INTO accounts_user (password, is_superuser, email, website, is_staff, is_active, signed_up_at, trial_ends_at)
SELECT '', false, number || '@example.com', '', false, true, now(), now() FROM generate_series(1, 100) AS number
"""
STATEMENTS: Final = """
SELECT calls, shared_blks_hit + shared_blks_read AS pages, total_exec_time, left(regexp_replace(query, '\\s+', ' ', 'g'), 110)
FROM pg_stat_statements
WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND toplevel
ORDER BY pages DESC
LIMIT 12
"""
TOTAL: Final = """
SELECT sum(shared_blks_hit + shared_blks_read)
FROM pg_stat_statements
WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND toplevel AND query NOT LIKE 'INSERT INTO%'
"""


@dataclass(frozen=True)
class Lane:
    """One database, and its connection that looks from outside."""

    name: str
    url: str
    connection: psycopg.Connection[Any]

    def ask(self, sql: str) -> Any:
        """The first value of the first row."""
        row = self.connection.execute(sql).fetchone()
        return row[0] if row else None

    def run(self, tasks: int, workers: int) -> float:
        """Run a lot to its end, and give the tasks a second after the warm-up."""
        before = self.ask(ENTRIES)
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            os.environ["BENCHMARK_DATABASE_URL"] = self.url
            for number in range(workers):
                stack.enter_context(process(folder, str(number), "django", "timeline_worker"))
            wait_for(
                lambda: (
                    self.ask("SELECT count(*) FROM timeline_worker WHERE seen_at > now() - interval '5 s'") >= workers
                )
            )
            self.connection.execute(INSERT, {"rows": tasks, "ahead": "0 seconds"})
            begun, early = 0.0, 0
            while (written := self.ask(ENTRIES) - before) < EACH * tasks:
                if not begun and written >= EACH * tasks * WARM_UP:
                    begun, early = perf_counter(), written
                sleep(LOOK)
            return (tasks - early / EACH) / (perf_counter() - begun)


@contextmanager
def lane(name: str) -> Iterator[Lane]:
    """A database with all tables, and some people."""
    with own_database(name) as url:
        environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "benchmarks.settings", "BENCHMARK_DATABASE_URL": url}
        migrate = [sys.executable, "-m", "django", "migrate", "--verbosity", "0"]
        subprocess.run(migrate, env=environment, check=True)  # noqa: S603 (ours)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(PEOPLE)
            yield Lane(name, url, connection)


def print_statements(one: Lane, *, reset: bool = False) -> None:
    """Which statements have read the most pages; needs pg_stat_statements."""
    one.connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
    if not reset:
        for calls, pages, took, query in one.connection.execute(STATEMENTS).fetchall():
            print(f"  {pages / calls:>10,.0f} pages × {calls:>6,}, {took / calls:>8.2f} ms: {query}")
        print(f"  {one.ask(TOTAL):>10,} pages in all")
    one.connection.execute(
        "SELECT pg_stat_statements_reset(0, (SELECT oid FROM pg_database WHERE datname = current_database()), 0)"
    )


def main(arguments: argparse.Namespace) -> None:
    """Run the rounds, and print."""
    with ExitStack() as stack:
        lanes = [stack.enter_context(lane(name)) for name in ("free", "pinned")]
        stack.enter_context(old_snapshot(lanes[1].url))
        ratios = []
        for number in range(1, arguments.lots + 1):
            rates = []
            for one in lanes:
                if arguments.statements:
                    print_statements(one, reset=True)
                rates.append(one.run(arguments.tasks, arguments.workers))
                if arguments.statements:
                    print(one.name)
                    print_statements(one)
            dead = lanes[1].ask("SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'timeline_scheduledtask'")
            ratios.append(rates[1] / rates[0])
            said = (
                f"lot {number}: free {rates[0]:,.0f}/s, pinned {rates[1]:,.0f}/s: {ratios[-1]:.2f}; {dead:,} dead rows"
            )
            print(said, flush=True)
        print(f"All lots: {geometric_mean(ratios):.2f}")


def parse(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--tasks", type=int, default=40_000, help="in a lot (default: %(default)s)")
    parser.add_argument("--lots", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--statements", action="store_true", help="pages by statement; the server must load pg_stat_statements"
    )
    return parser.parse_args(given)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchmarks.settings")
    main(parse())
