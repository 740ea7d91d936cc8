"""Processes that tests start: workers, pollers, beats."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from random import Random

from django.db import connection

from tests.databases import url_of
from tests.forking import Process, start
from tests.testapp.models import Effect
from timeline.clocks import MachineTime
from timeline.models import ScheduledTask, Sign

DEADLINE = 120


def start_process(folder: Path, name: str, *command: str, **environment: str) -> Process:
    """Start a module of Python (``manage`` or ``celery``) on the tests' database, with what it prints in ``<name>.log``."""
    # Django's checks, for which each of them would load all pages and the API, are asked of this process already.
    if command[0] == "manage":
        command = (*command, "--skip-checks")
    environment = {
        **os.environ,
        "CELERY_SKIP_CHECKS": "1",
        "DJANGO_SETTINGS_MODULE": "tests.process_settings",
        "TEST_DATABASE_URL": url_of(connection.settings_dict),
        "TEST_FOLDER": str(folder),
        **environment,
    }
    with (folder / f"{name}.log").open("wb") as log:
        return start(*command, environment=environment, log=log)


def start_worker(folder: Path, name: str, *options: str) -> Process:
    """Start an embedded worker."""
    return start_process(folder, name, "manage", "timeline_worker", "--name", name, *options)


def kill(process: Process) -> None:
    """Kill it and all it forked, at once, without a chance to say anything."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def let_be_dead(**which: str) -> None:
    """Let the killed have been silent for long: a minute passes for the database. Who is alive gives a sign of itself again."""
    Sign.objects.all().delete()
    held = ScheduledTask.objects.filter(state="active", **which)
    held.update(lease_expires_at=MachineTime(timedelta(seconds=-1)))


def wait_for(condition, what: str, within: float = DEADLINE) -> None:
    """Wait until it holds, for two minutes at most, or so many seconds."""
    give_up = time.monotonic() + within
    while not condition():
        assert time.monotonic() < give_up, f"{what} did not happen"
        time.sleep(0.05)


def all_ended() -> bool:
    """Whether no task is open."""
    return not ScheduledTask.objects.open().exists()


def kill_in_turn(workers: Callable[[str], Process], *, kills: int, each: int, random: Random) -> None:
    """
    Let two workers work until all tasks have ended, and kill one of them so many times, each after ``each`` more effects: it is
    known to be dead at once, and another takes its place.
    """
    alive = {name: workers(name) for name in ("w0", "w1")}
    for number in range(kills):
        wait_for(lambda least=each * number: Effect.objects.count() > least or all_ended(), "some work")
        time.sleep(random.uniform(0, 0.1))
        name = random.choice(sorted(alive))
        kill(alive.pop(name))
        let_be_dead(worker__startswith=f"{name}:")
        alive[f"w{number + 2}"] = workers(f"w{number + 2}")
    wait_for(all_ended, "the end of all")
