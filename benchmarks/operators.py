"""
What operators do with many rows, on PostgreSQL, in a table of a million tasks: enroll, sweep, plan, apply, redrive.

Each prints rows a second, by processor time and by the clock; processor time is that of this process and of its backend
together. Then the highest memory that this process had when a quarter was done, and at the end; and the statements that
took the backend longest. Figures of one machine at one moment; the clock's say little where others work on it.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

from benchmarks.databases import server_version, site
from benchmarks.processor import backend_clock
from benchmarks.scale import without_indexes

if TYPE_CHECKING:
    from timeline.operations.sets import Portion

SLICE = 25_000  # People in one statement of the fill.
GROUP = "0123456789abcdef"
SHOWN = 4  # Statements of each.
WIDE = 110


class Meter:
    """Measures one operation, which says how far it has come."""

    def __init__(self, name: str, rows: int) -> None:
        self.name, self.rows = name, rows
        self.backend = backend_clock()
        self.statements: dict[str, float] = defaultdict(float)
        self.quarter = 0

    def at(self, done: int) -> None:
        """Note the memory once a quarter is done."""
        if not self.quarter and done * 4 >= self.rows:
            self.quarter = peak()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Measure what is done within, and print it."""
        from django.db import connection

        forget_peak()
        before, by_clock, by_backend = process_time(), perf_counter(), self.backend()
        with connection.execute_wrapper(self._executed):
            yield
        ours, clock = process_time() - before, perf_counter() - by_clock
        theirs = self.backend() - by_backend
        took = ours + theirs
        print(
            f"{self.name:<34} {self.rows:>8,} rows {self.rows / took:>8,.0f}/s {took / self.rows * 1e6:>6,.0f} µs a row"
            f" ({ours:.1f} s here, {theirs:.1f} s there); by the clock {self.rows / clock:,.0f}/s;"
            f" memory {self.quarter / 1024:.0f}, {peak() / 1024:.0f} MiB",
            flush=True,
        )
        for sql, seconds in sorted(self.statements.items(), key=itemgetter(1), reverse=True)[:SHOWN]:
            print(f"    {seconds / self.rows * 1e6:>6.0f} µs a row: {sql}", flush=True)

    def _executed(self, execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        before = self.backend()
        try:
            return execute(sql, *rest)
        finally:  # What was sent ahead counts with a later one.
            self.statements[" ".join(sql.split())[:WIDE]] += self.backend() - before


def peak() -> int:
    """The most memory that this process had, in KiB; 0 where that is not told."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)


def forget_peak() -> None:
    """Begin anew."""
    if (forget := Path("/proc/self/clear_refs")).exists():
        forget.write_text("5")


def fill(people: int, failed: int) -> None:
    """Make people with what is over."""
    from django.db import connection

    sql = Path(__file__).with_suffix(".sql").read_text()
    with without_indexes("timeline_scheduledtask"), connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        for first in range(1, people + 1, SLICE):
            last = min(first + SLICE - 1, people)
            cursor.execute(sql, {"first": first, "last": last, "failed": failed, "group": GROUP})
        cursor.execute("SET session_replication_role = origin")
    tidy()


def tidy() -> None:
    """What autovacuum would do by and by."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
        cursor.execute("CHECKPOINT")


def enroll_all(people: int, failed: int) -> None:
    """Begin a trial for all who have none."""
    from project.accounts.models import User
    from timeline.clocks import story_now
    from timeline.operations.enroll import enroll
    from timeline.operations.sets import pages

    meter, done = Meter("timeline_enroll", 2 * (people - failed)), 0

    def batches() -> Iterator[Portion]:
        nonlocal done
        for batch in pages(User.objects.all(), User, 1000, using="default"):
            yield batch
            done += 2 * len(batch.refs)
            meter.at(done)

    with meter.running():
        tally = enroll(
            timeline="trial", batches=batches(), key="", params={}, started_at=None, once=True, clock=story_now
        )
    check(tally.tasks, meter.rows)


def sweep_all(rows: int) -> None:
    """Go through a round in which nothing has drifted."""
    from timeline.clocks import story_now
    from timeline.features.sweep.verbs import begin_round, sweep

    meter, looked = Meter("timeline_sweep, no drift", rows), 0
    begin_round(using="default")
    mended = 0
    with meter.running():
        while (swept := sweep(now=story_now("default"), using="default")).left:
            looked, mended = looked + 2 * swept.looked, mended + swept.mended
            meter.at(looked)
    check(mended, 0)


def plan_all(rows: int, drifted: int) -> None:
    """Show what would change."""
    from timeline.clocks import story_now
    from timeline.features.plans.differ import differences
    from timeline.registry import registry

    meter = Meter(f"timeline_plan, {drifted:,} runs differ", rows)
    with meter.running():
        for found in differences([registry.timeline("trial")], now=story_now("default"), using="default"):
            meter.at(2 * found["trial"].runs)
    check(found["trial"].changed, drifted)


def apply_all(rows: int) -> None:
    """Let rows follow a field that SQL has changed."""
    from timeline.clocks import story_now
    from timeline.features.plans.apply import apply_choices, check_choices
    from timeline.registry import registry

    meter, done = Meter("timeline_apply", rows), 0
    with meter.running():
        for some in apply_choices(check_choices(registry.timeline("trial")), clock=story_now, using="default"):
            done += some.rows
            meter.at(done)
    check(done, rows)


def discard(failed: int) -> None:
    """Let reminders of people with an open trial fail, so that a group has some whose runs are open, and some whose are not."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute(
            "UPDATE timeline_scheduledtask SET state = 'discarded', seq = 3, attempt = 1, finished_at = now(),"
            " reason_code = 'error', fingerprint = %s WHERE id IN (SELECT id FROM timeline_scheduledtask"
            " WHERE task_key = 'trial.remind' AND state = 'scheduled' LIMIT %s)",
            [GROUP, failed],
        )
        cursor.execute("SET session_replication_role = origin")


def redrive_bulk(rows: int) -> None:  # of bulk_actions
    """Redrive a group as somebody who may, as a bulk action of the admin or the API; polls do it."""
    from project.accounts.models import User
    from timeline.clocks import story_now
    from timeline.features.bulk_actions.poll import act_in_bulk, begin_bulk
    from timeline.models import BulkAction, ScheduledTask

    now = story_now("default")
    staff = User.objects.create(email="staff", is_staff=True, is_superuser=True, signed_up_at=now, trial_ends_at=now)
    asked = {"action": "redrive", "filters": {"group": GROUP}, "reason": "mended"}
    meter = Meter("redrive, as a bulk action", rows)
    with meter.running():
        bulk = BulkAction(asker=str(staff.pk), actor="staff", created_at=story_now("default"), **asked)
        begin_bulk(bulk, ScheduledTask.objects.all(), using="default")
        done = 0
        while changed := act_in_bulk(now=story_now("default"), using="default"):
            meter.at(done := done + changed)
    check(done, rows)


def redrive_at_once(rows: int) -> None:
    """Redrive a group as the command does."""
    from timeline.shortcuts import redrive_group

    meter = Meter("redrive, timeline_dead_letters", rows)
    with meter.running():
        done = redrive_group(GROUP, reason="mended")
        meter.at(rows)
    check(done.redriven, rows)


def forget_redriven() -> None:
    """Make it as it was before: what was redriven has failed, and the runs of half of it have ended."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("DELETE FROM timeline_scheduledtask WHERE revision > 1")
        cursor.execute(
            "UPDATE timeline_timelinerun SET ended_at = now(), end_code = 'finished', end_reason = 'finished' WHERE id IN"
            " (SELECT run_id FROM timeline_scheduledtask WHERE task_key = 'trial.check_script_usage' AND state = 'discarded')"
        )
        cursor.execute("SET session_replication_role = origin")
    tidy()


def check(found: int, wanted: int) -> None:
    """Refuse figures of something else."""
    if found != wanted:
        raise SystemExit(f"{found:,} instead of {wanted:,}.")


def main(tasks: int, failed: int) -> None:
    """Fill, measure and print."""
    from django.db import connection

    from project.accounts.models import User
    from timeline.models import ScheduledTask

    people = tasks // 10
    started = perf_counter()
    fill(people, failed // 2)
    print(f"PostgreSQL {server_version()}; filled in {perf_counter() - started:.0f} s", flush=True)
    enroll_all(people, failed // 2)
    tidy()
    print(f"{ScheduledTask.objects.count():,} tasks")
    rows = 2 * (people - failed // 2)
    sweep_all(rows)
    plan_all(rows, 0)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE accounts_user SET trial_ends_at = trial_ends_at + interval '1 day' WHERE is_active")
    tidy()
    plan_all(rows, rows // 2)
    apply_all(rows)
    discard(failed - failed // 2)
    tidy()
    redrive_at_once(failed)
    forget_redriven()
    redrive_bulk(failed)  # of bulk_actions
    User.objects.filter(email="staff").delete()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--failed", type=int, default=10_000)
    arguments = parser.parse_args()
    if arguments.tasks < 10 * arguments.failed:
        parser.error("--tasks: give ten times as many as --failed, or more")
    with site():
        main(arguments.tasks, arguments.failed)
