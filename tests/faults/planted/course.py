"""
``python -m tests.faults.planted.course STEP …``: a short way through what the package promises, with workers that it forks.

It uses what is public alone: the shortcuts, ``manage.py``, signals and tables. What became of it the checker says.
"""

from __future__ import annotations

import base64
import gc
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

# A folder with a copy of our package, which comes before ours: here, and in what is started from here.
if PACKAGE := os.environ.get("FAULTS_PACKAGE", ""):
    os.environ["PYTHONPATH"] = os.pathsep.join([PACKAGE, str(Path.cwd())])
    os.chdir(PACKAGE)
    sys.path.insert(0, PACKAGE)

import django
import redis

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection, connections  # noqa: E402
from django.utils import timezone  # noqa: E402

import timeline  # noqa: E402
from tests.faults.app import journal  # noqa: E402
from tests.faults.app.models import Subject  # noqa: E402
from tests.faults.app.timelines import DECLARED, KINDS  # noqa: E402
from timeline.shortcuts import cancel, emit, redrive, schedule  # noqa: E402

LEASE: Final = float(os.environ.get("TEST_LEASE", "60"))  # Seconds.
SOON: Final = 5.0  # Seconds that what should happen may take, before the course goes on without it.
PATIENCE: Final = 60.0  # The same where it does happen, however busy the machine is, or where a lease has to run out.
UNDER_WAY: Final = "SELECT count(*) FROM timeline_scheduledtask WHERE task_key = 'loose.narrow' AND state = 'active'"
OPEN: Final = "SELECT count(*) FROM timeline_scheduledtask WHERE state NOT IN ('completed', 'discarded', 'cancelled')"
PLAIN: Final = f"{OPEN} AND task_key = 'loose.plain'"


class Stage:
    """What the steps share: a folder, and workers."""

    def __init__(self) -> None:
        if PACKAGE:
            call_command("migrate", verbosity=0)  # Puts the functions of the copy in place of ours.
        self.folder = Path(os.environ["TEST_FOLDER"])
        self.subject = Subject.objects.create()
        self._workers: list[int] = []

    def fork(self, command: str, *arguments: str, anew: bool = False) -> int:
        """
        Start a command of ``manage.py`` as a process in a group of its own; gives its id once it says that it works.

        Args:
            command, arguments: What to start.
            anew: With an interpreter of its own, for what goes to the broker: a thread of ours that just then imports what
                belongs to it would leave a fork without that import for ever.
        """
        connections.close_all()
        if child := os.fork():
            self._workers.append(child)
            with suppress(OSError):
                os.setpgid(child, child)
            log_of_it = self.log_of(child)
            wait_until(lambda: log_of_it.exists() and log_of_it.stat().st_size, PATIENCE)
            return child
        os.setpgid(0, 0)
        log = os.open(self.log_of(os.getpid()), os.O_WRONLY | os.O_CREAT)
        os.dup2(log, 1)
        os.dup2(log, 2)
        sys.stdout.reconfigure(line_buffering=True)
        try:
            if anew:
                os.execv(sys.executable, [sys.executable, "-m", "django", command, "--skip-checks", *arguments])  # noqa: S606
            call_command(command, *arguments, skip_checks=True)
        finally:
            os._exit(0)

    def log_of(self, process: int) -> Path:
        """What a process that was forked says."""
        return self.folder / f"{process}.log"

    def worker(self, name: str = "one") -> int:
        """Start an embedded worker."""
        return self.fork("timeline_worker", "--name", name)

    def ask(self, verb: str, do: Callable[[], Any], *tasks: Any, entity: Any = None, due_at: Any = None) -> Any:
        """Do what somebody asks for, and write down that it is done."""
        call = f"{verb}-{time.time_ns()}"
        at = due_at.timestamp() if due_at else None
        named = [str(task.pk) for task in tasks]
        about = str(entity.pk) if entity else ""
        journal.write("asked", call=call, verb=verb, tasks=named, entity=about, due_at=at)
        done = do()
        made = [str(done.task.pk)] if verb == "schedule" else named
        journal.write("done", call=call, tasks=made)
        return done

    def schedule(self, kind: str, ahead: float = 0, **payload: Any) -> Any:
        """Schedule a task of a subject of its own."""
        at = timezone.now() + timedelta(seconds=ahead)
        subject = Subject.objects.create()
        return self.ask("schedule", lambda: schedule(f"loose.{kind}", subject, at=at, payload=payload), due_at=at).task

    def open_gate(self, gate: str) -> None:
        """Let the handler of this attempt go on."""
        (self.folder / f"{gate}.open").touch()

    def is_at(self, gate: str, seconds: float = PATIENCE) -> bool:
        """Whether the handler of this attempt comes to its gate in time."""
        return wait_until((self.folder / f"{gate}.at").exists, seconds)

    def come_to_rest(self, seconds: float = SOON) -> None:
        """Wait until no task is open, for a while."""
        wait_until(lambda: not count(OPEN), seconds)

    def stop(self) -> None:
        """Stop the workers; kill those that do not."""
        for worker in self._workers:
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGCONT)
                os.kill(worker, signal.SIGTERM)
        for worker in self._workers:
            if not wait_until(lambda worker=worker: is_gone(worker), SOON):
                os.kill(worker, signal.SIGKILL)
                wait_until(lambda worker=worker: is_gone(worker), SOON)
        self._workers.clear()


def wait_until(condition: Callable[[], Any], seconds: float) -> bool:
    """Whether it comes to hold within this time."""
    give_up = time.monotonic() + seconds
    while not (holds := condition()) and time.monotonic() < give_up:
        time.sleep(0.02)
    return bool(holds)


def is_gone(process: int) -> bool:
    """Whether a child has ended."""
    with suppress(ChildProcessError):
        return os.waitpid(process, os.WNOHANG)[0] != 0
    return True


def count(query: str) -> int:
    """The number that a query gives."""
    with connection.cursor() as cursor:
        cursor.execute(query)
        [number] = cursor.fetchone()
    return int(number)


def simple(stage: Stage) -> None:
    """Tasks of every kind."""
    for kind in KINDS:
        for _ in range(3):
            stage.schedule(kind)
    stage.worker()


def run(stage: Stage) -> None:
    """A run with follow-ups."""
    stage.ask("start", lambda: emit("course.begun", stage.subject), entity=stage.subject)
    stage.worker()


def retried(stage: Stage) -> None:
    """Tasks that fail, and then do not."""
    stage.schedule("plain", fails=1)
    stage.schedule("atomic", fails=2)
    stage.worker()


def unguarded(stage: Stage) -> None:
    """The same, in a database without its triggers."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE timeline_scheduledtask DISABLE TRIGGER USER")
    retried(stage)


def cancelled(stage: Stage) -> None:
    """A task is cancelled while its handler runs."""
    task = stage.schedule("atomic", gate="cancelled")
    stage.worker()
    stage.is_at("cancelled-1")
    stage.ask("cancel", lambda: cancel(task, reason="not wanted"), task)
    stage.open_gate("cancelled-1")


def frozen(stage: Stage) -> None:
    """A worker is frozen in a handler for longer than its lease; another one takes over; the first one wakes up."""
    stage.schedule("atomic", gate="frozen")
    worker = stage.worker("frozen")
    stage.is_at("frozen-1")
    since = journal.clock()
    os.killpg(worker, signal.SIGSTOP)
    time.sleep(LEASE + 0.1)
    stage.worker("heir")
    stage.is_at("frozen-2")
    stage.open_gate("frozen-1")
    journal.write("trouble", at=since, kind="frozen", group=worker, until=journal.clock())
    os.killpg(worker, signal.SIGCONT)
    time.sleep(0.5)  # It tries to say how its attempt ended; nothing tells when it has.
    stage.open_gate("frozen-2")


def killed(stage: Stage) -> None:
    """A worker is killed in a handler; another one takes over."""
    stage.schedule("plain", gate="killed")
    worker = stage.worker("killed")
    stage.is_at("killed-1")
    journal.write("trouble", kind="killed", group=worker, until=None)
    os.killpg(worker, signal.SIGKILL)
    time.sleep(LEASE + 0.1)
    stage.worker("heir")
    stage.is_at("killed-2")
    stage.open_gate("killed-2")


def living(stage: Stage) -> None:
    """A handler takes long; another worker comes."""
    stage.schedule("plain", gate="living")
    stage.worker("long")
    stage.is_at("living-1")
    stage.worker("other")
    stage.is_at("living-2", 2 * LEASE)  # It should not; the lease of the first would have run out by now.
    stage.open_gate("living-1")
    stage.open_gate("living-2")


def ahead(stage: Stage) -> None:
    """A task is due in a second."""
    stage.schedule("plain", ahead=1)
    stage.worker()


def redriven(stage: Stage) -> None:
    """A task is cancelled before it is due, and redriven."""
    task = stage.schedule("plain", ahead=3600)
    stage.ask("cancel", lambda: cancel(task, reason="a mistake"), task)
    redrive(task, reason="a mistake")
    stage.worker()


def resent(stage: Stage) -> None:
    """Nobody takes a message: it is sent again."""
    task = stage.schedule("plain")
    poller = stage.fork("timeline_poll", anew=True)
    with redis.from_url(os.environ["TEST_BROKER_URL"]) as broker:
        for _ in range(2):
            if not wait_until(lambda: broker.llen("faults.default"), PATIENCE):
                raise TimeoutError(f"no message came; the poller said: {stage.log_of(poller).read_text()}")
            body = json.loads(base64.b64decode(json.loads(broker.rpop("faults.default"))["body"]))
            journal.write("message", tasks=body[1]["task_ids"], token=body[1]["token"])
    stage.ask("cancel", lambda: cancel(task, reason="seen enough"), task)


def narrow(stage: Stage) -> None:
    """
    Two workers, and tasks of which one may be under way: one is until the other worker has looked at all there is.

    What comes next waits for states, never for a while: the others are there once the first is entered, else its worker might
    take two of them, and enter the second one when the first is over. Should the other worker take one, or the first one hold
    one until it is given back, the first goes on when that one is entered.
    """
    stage.schedule("narrow", gate="narrow")
    stage.worker("one")
    stage.is_at("narrow-1")
    for attempt in range(1, 6):
        stage.open_gate(f"beside-{attempt}")  # They wait for nothing; their gate says that one is entered.
    for _ in range(3):
        stage.schedule("narrow", gate="beside")
    stage.worker("other")
    for _ in range(2):  # Between one and the next, the other worker has looked for what has a limit, too.
        stage.schedule("plain")
        wait_until(lambda: not count(PLAIN), PATIENCE)
    if count(UNDER_WAY) > 1:  # It should not come to that.
        wait_until(lambda: list(stage.folder.glob("beside-*.at")), PATIENCE)
    stage.open_gate("narrow-1")


def to_the_end(stage: Stage) -> None:
    """Tasks of which one may be under way until its end: the first fails, then the others wait for it."""
    stage.schedule("to_the_end", fails=2)
    for _ in range(3):
        stage.schedule("to_the_end")
    stage.worker()


def killed_holder(stage: Stage) -> None:
    """A worker is killed in a handler of which one may be entered at a time; another one carries on."""
    stage.schedule("narrow", gate="holder")
    stage.schedule("narrow")
    worker = stage.worker("killed")
    stage.is_at("holder-1")
    journal.write("trouble", kind="killed", group=worker, until=None)
    os.killpg(worker, signal.SIGKILL)
    time.sleep(LEASE + 0.1)
    stage.worker("heir")
    stage.is_at("holder-2")
    stage.open_gate("holder-2")


STEPS: Final = {
    step.__name__: step
    for step in (
        *(simple, run, retried, unguarded, cancelled, frozen, killed, living, ahead, redriven, resent),
        *(narrow, to_the_end, killed_holder),
    )
}


def main(names: list[str]) -> None:
    """Go these steps, one after the other."""
    gc.collect()
    gc.freeze()  # The workers that are forked need not look through what is loaded.
    journal.write("declared", **DECLARED)
    print("The package is", timeline.__file__, flush=True)
    for name in names:
        stage = Stage()
        try:
            STEPS[name](stage)
            stage.come_to_rest()
        finally:
            stage.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
