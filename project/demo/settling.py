"""The settlement told: ten thousand transactions are paid out while whoever pays them is killed three times."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from time import monotonic, sleep
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from project.billing.models import Transaction
from project.demo.clock import now, set_going
from project.demo.outsiders import read_books, start
from project.demo.processes import Interrupted, interruptible, start_process
from timeline.models import ScheduledTask, StepRecord
from timeline.shortcuts import run_now

FAILING, LOSING = 0.05, 0.02  # Shares of calls that are refused, and of those whose answers are lost.
SEED = 21  # Of the chances: the ninth answer of the processor is lost.
KILLED_AT = (0.2, 0.5, 0.8)  # Of all transactions.
WITHIN = 300  # Seconds; it takes about twenty.


@dataclass
class Course:
    """
    What was seen of a settlement.

    Args:
        killed: How many workers were killed.
        began: Real time at which it began, of ``monotonic``.
        took: Seconds in all.
        lost: Seconds in which nothing moved, as a worker had been killed.
    """

    killed: int = 0
    began: float = field(default_factory=monotonic)
    took: float = 0.0
    lost: float = 0.0


def settle(count: int, *, with_keys: bool, console: Console) -> None:
    """
    Settle so many transactions, kill the worker three times, and say what came of it; leave nothing running.

    Args:
        count: Of transactions, at least 1.
        with_keys: Whether the processor heeds idempotency keys.
        console: Where it is shown.

    Raises:
        SystemExit: if something was paid twice or not at all, or if it is interrupted.
    """
    try:
        with interruptible(), ExitStack() as stack:
            set_going(seconds_per_day=600, begin=six_in_the_evening())
            outside = start_outside(stack, with_keys=with_keys)
            make_transactions(count, at=now() - timedelta(hours=1))
            course = _watch(_Workers(stack), count, console)
            told = read_books(outside)
    except Interrupted:
        raise SystemExit("\nStopped: all that worked for it has ended.") from None
    console.print(_table(count, course, told))
    if told["paid_twice"] or told["paid"] != count:
        raise SystemExit(f"{told['paid_twice']:,} paid twice, {count - told['paid']:,} not at all.")


def six_in_the_evening() -> datetime:
    """Today, in Greenwich: before midnight in Berlin, whose clock the settlement goes by."""
    return datetime.now(UTC).replace(hour=18, minute=0, second=0, microsecond=0)


def make_transactions(count: int, *, at: datetime) -> None:
    """Make so many that are to be paid out."""
    rows = (Transaction(account=f"DE{n:020d}", cents=100 + n % 9900, created_at=at) for n in range(count))
    Transaction.objects.bulk_create(rows, batch_size=1000)


def start_outside(stack: ExitStack, *, with_keys: bool = True) -> str:
    """Start those whom billing calls, and tell all processes where they are; gives their address."""
    rates = f"--failing {FAILING} --losing {LOSING} --taking 0.02 --seed {SEED}"
    url = start(stack, "outside", *rates.split(), *([] if with_keys else ["--no-keys"]))
    os.environ["OUTSIDE_URL"] = url
    return url


def loop_of(task: ScheduledTask) -> StepRecord | None:
    """How far the settlement is, as anybody can ask; None: it has not begun."""
    return StepRecord.objects.filter(task_id=task.pk, name="settle_batch").first()


def settle_now(worker: subprocess.Popen[bytes]) -> ScheduledTask:
    """
    Wait until the next settlement is there as a row, which is the poller's work, and have it run at once.

    Args:
        worker: Who polls.

    Raises:
        SystemExit: if it has ended, or plans nothing within two minutes.
    """
    give_up = monotonic() + 120
    while monotonic() < give_up and worker.poll() is None:
        task = ScheduledTask.objects.open().filter(task_key="settlement.settle").first()
        if task is not None:
            run_now(task, reason="the demonstration does not wait for the night")
            return task
        sleep(0.05)
    raise SystemExit("The worker has planned nothing; see the files *.log in the demo's folder.")


class _Workers:
    """One worker at a time; the next begins when the one before is killed."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.count = 0
        self.next()

    def next(self) -> None:
        """Start one."""
        self.count += 1
        command = ("manage", "timeline_worker", "--name", f"worker-{self.count}")
        self.process = start_process(self._stack, f"worker-{self.count}", *command)

    def kill(self) -> int:
        """Kill it, with no chance to say anything; gives its process id."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        return self.process.pid


def _watch(workers: _Workers, count: int, console: Console) -> Course:
    """Have the settlement begin, and kill on the way."""
    task = settle_now(workers.process)
    course = Course()
    to_kill = [share * count for share in KILLED_AT]
    silent_since: float | None = None
    before = 0
    columns = (TextColumn("Settling"), BarColumn(40), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("", total=count)
        while ScheduledTask.objects.open().filter(pk=task.pk).exists():
            loop = loop_of(task)
            done = (loop.done or 0) if loop else 0
            progress.update(bar, completed=done)
            if silent_since is not None and done > before:
                course.lost += monotonic() - silent_since
                silent_since = None
            if to_kill and done >= to_kill[0] and silent_since is None:
                to_kill.pop(0)
                pid = workers.kill()
                silent_since, before = monotonic(), (loop_of(task) or StepRecord(done=0)).done or 0
                course.killed += 1
                console.print(f"kill -9 {pid}  at {before:,} of {count:,}", style="red", highlight=False)
                workers.next()
            if monotonic() - course.began > WITHIN:
                raise SystemExit("It took too long; see the files *.log in the demo's folder.")
            sleep(0.02)
        progress.update(bar, completed=count)
    course.took = monotonic() - course.began
    return course


def _table(count: int, course: Course, told: dict[str, Any]) -> Table:
    table = Table(title="What became of the money", title_justify="left", show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    batches = told["done"].get("settle", 0)
    repeated = told["repeated"].get("settle", 0)
    lines: list[tuple[str, str]] = [
        ("transactions", f"{count:,}"),
        ("paid", f"{told['paid']:,}"),
        ("paid twice", f"{told['paid_twice']:,}"),
        ("batches paid out", f"{batches:,}"),
        ("batches asked for again, after they were done", f"{repeated:,}"),
        ("calls refused (503)", f"{told['failed']:,}"),
        ("answers lost", f"{told['lost']:,}"),
        ("workers killed", f"{course.killed}"),
        ("seconds in all", f"{course.took:.1f}"),
        ("seconds lost by the kills", f"{course.lost:.1f}"),
    ]
    for line in lines:
        table.add_row(*line)
    return table
