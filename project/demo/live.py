"""The story lived: a site and a worker as processes, people who use it, and a clock that runs fast."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from time import monotonic, sleep, time
from urllib.error import URLError

from django.conf import settings
from django.urls import reverse
from rich.console import Console

from project.demo.browsers import HttpBrowser, Visit
from project.demo.clock import now
from project.demo.operators import Login
from project.demo.people import Action, Person

SHOWN = 8  # So many requests and links are printed; the rest happen quietly.


class Interrupted(Exception):
    """Ctrl-C, or SIGTERM."""


def live(
    people: list[Person], login: Login, *, port: int, seconds_per_day: float, celery: bool, console: Console
) -> None:
    """
    Run the site and what works for it until interrupted; leave nothing running.

    Args:
        people: Who signs up, one after the other, through the site's form over HTTP.
        login: What opens the admin.
        port: Of the site, on the loopback address.
        seconds_per_day: How fast story time runs.
        celery: Whether Celery's workers and beat work for it, rather than one embedded worker.
        console: Where it is shown.
    """
    os.environ["DEMO_CLOCK"] = f"{time():.3f} {seconds_per_day:g}"
    os.environ["DEBUG"] = "1"
    os.environ["SECRET_KEY"] = settings.SECRET_KEY
    before = {number: signal.signal(number, _interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with ExitStack() as stack:
            site = _process(stack, "site", "manage", "runserver", f"127.0.0.1:{port}", "--noreload")
            others = _celery(stack) if celery else [_process(stack, "worker", "manage", "timeline_worker")]
            base = f"http://127.0.0.1:{port}"
            _wait_for(base, site)
            console.print(
                f"Site {base}  worker pid {others[0].pid}  1 day = {seconds_per_day:g} s  (Ctrl-C stops all of it)\n",
                soft_wrap=True,
            )
            _Crowd(people, login, base, console).act_until_interrupted([site, *others])
    except Interrupted:
        console.print("\nStopped: the site and all that worked for it have ended.")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Crowd:
    """People at the site, each at their own time."""

    def __init__(self, people: list[Person], login: Login, base: str, console: Console) -> None:
        self.login = login
        self.base = base
        self.console = console
        self.to_come = list(people)
        self.agenda: list[tuple[datetime, Visit, Action]] = []
        self.joined: list[Visit] = []

    def act_until_interrupted(self, processes: list[subprocess.Popen[bytes]]) -> None:
        """Let one person sign up each quarter of a day, and everybody do what they do."""
        next_sign_up = now()
        while all(process.poll() is None for process in processes):
            if self.to_come and now() >= next_sign_up:
                self._sign_up(self.to_come.pop(0))
                next_sign_up = now() + timedelta(hours=6)
            for entry in [entry for entry in self.agenda if entry[0] <= now()]:
                self.agenda.remove(entry)
                entry[1].do(entry[2])
            sleep(0.05)
        raise SystemExit("The site or a worker has ended by itself; see the files *.log in the demo's folder.")

    def _sign_up(self, person: Person) -> None:
        visit = Visit(person, HttpBrowser(self.base))
        said = visit.sign_up()
        at = now()
        self.agenda += [(at + timedelta(days=day), visit, action) for day, action in person.actions]
        if not self.joined:
            self._print_ways_in(visit)
        self.joined.append(visit)
        if len(self.joined) <= SHOWN:
            self.console.print(said, style="dim", highlight=False, soft_wrap=True)
        if len(self.joined) == min(SHOWN, len(self.joined) + len(self.to_come)):
            self._print_links()

    def _print_ways_in(self, visit: Visit) -> None:
        """The links to look at first."""
        events = f"{self.base}{reverse('admin:timeline_scheduledtask_changelist')}"
        ways = [
            (f"{events}  upcoming events", f"log in as {self.login.email} with the password {self.login.password}"),
            (f"{self.base}{visit.home}  one person's timeline", visit.person.email),
            (f"{self.base}{reverse('timeline_api:docs')}  the REST API", "with the same login"),
        ]
        self.console.print("Look here first:", style="bold")
        for link, note in ways:
            self.console.print(f"  {link}, {note}", highlight=False, soft_wrap=True)
        self.console.print()

    def _print_links(self) -> None:
        self.console.print("\nTheir timelines; the rows move by themselves:", style="bold")
        for visit in self.joined:
            link = f"{self.base}{visit.home}"
            self.console.print(f"  {link}  {visit.person.email} {visit.person.habit}", highlight=False, soft_wrap=True)


def _celery(stack: ExitStack) -> list[subprocess.Popen[bytes]]:
    """Start a worker for tasks, one for polls alone, and beat, which polls by the schedule in its tables."""
    _process(stack, "install", "manage", "timeline_install_beat").wait()
    prefix = os.environ["QUEUE_PREFIX"] = str(settings.QUEUE_PREFIX)
    app = ("celery", "-A", "project")
    return [
        _process(stack, "worker", *app, "worker", "-Q", f"{prefix}.default", "-n", "worker@%h", "-c", "2"),
        _process(stack, "poll-worker", *app, "worker", "-Q", f"{prefix}-poll", "-n", "poll@%h", "-c", "1"),
        _process(stack, "beat", *app, "beat", "--pidfile", ""),
    ]


def _process(stack: ExitStack, name: str, *command: str) -> subprocess.Popen[bytes]:
    """Start a module (``manage`` or ``celery``); it ends with the stack, and its output is in ``<name>.log``."""
    log = stack.enter_context((Path(settings.DATA_DIR) / f"{name}.log").open("wb"))
    # In a session of its own, so that Ctrl-C reaches this process alone, which then ends the others in order.
    process = subprocess.Popen(  # noqa: S603 (our own command)
        [sys.executable, "-m", *command],
        cwd=settings.BASE_DIR,
        stdout=log,
        stderr=log,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    stack.callback(_end, process)
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait_for(base: str, site: subprocess.Popen[bytes]) -> None:
    give_up = monotonic() + 30
    while monotonic() < give_up and site.poll() is None:
        try:
            if HttpBrowser(base).get("/").status == 200:
                return
        except (URLError, OSError):
            sleep(0.1)
    raise SystemExit(
        f"The site did not come up at {base}; is the port taken? Try another with --port, and see site.log."
    )


def _interrupt(*_signal: object) -> None:
    raise Interrupted
