"""The story lived: a site and a worker as processes, people who keep coming, what goes wrong, and a clock that runs fast."""

from __future__ import annotations

import os
import subprocess
from contextlib import ExitStack
from datetime import datetime, timedelta
from importlib import import_module
from itertools import chain
from time import monotonic, sleep, time
from urllib.error import URLError

from django.apps import apps
from django.conf import settings
from django.urls import reverse
from rich.console import Console

from project.demo.appointments import Appointments
from project.demo.browsers import HttpBrowser, Visit
from project.demo.clock import now
from project.demo.mailing import let_be_down
from project.demo.operators import Login
from project.demo.outsiders import start_portal
from project.demo.people import Action, Person, newcomers
from project.demo.processes import Interrupted, interruptible, start_process

SHOWN = 8  # So many requests and links are printed; the rest happen quietly.
SOON, LATER = (
    timedelta(hours=6),
    timedelta(days=1),
)  # After how long the next one signs up: of the first crowd, and after it.
OUTAGES = (27, 14, 1)  # The mail server is down on this day, every so many days, for so many days.


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
    os.environ["SECRET_KEY"] = settings.SECRET_KEY
    try:
        with interruptible(), ExitStack() as stack:
            serve = (
                "manage",
                "runserver",
                f"127.0.0.1:{port}",
                "--noreload",
                "--insecure",
            )  # Which gives static files.
            start_portal(stack, slow=0.02)
            site = start_process(stack, "site", *serve)
            others = _celery(stack) if celery else [start_process(stack, "worker", "manage", "timeline_worker")]
            base = f"http://127.0.0.1:{port}"
            wait_for_site(base, site)
            console.print(
                f"Site {base}  worker pid {others[0].pid}  1 day = {seconds_per_day:g} s  "
                f"(Ctrl-C, or kill {os.getpid()}, stops all of it)\n",
                soft_wrap=True,
            )
            if apps.is_installed("timeline.webhooks"):
                shown = import_module("project.demo.hooks").start_webhooks(stack)
                console.print(f"  {shown}  webhooks that came, each verified\n", highlight=False, soft_wrap=True)
            _Crowd(people, login, base, console).act_until_interrupted([site, *others])
    except Interrupted:
        console.print("\nStopped: the site and all that worked for it have ended.")


def is_down(day: float) -> bool:
    """Whether the mail server is down, so many days after the story began."""
    first, every, long = OUTAGES
    return day >= first and (day - first) % every < long


class _Crowd:
    """People at the site, each at their own time; and the mail server, which breaks down now and then."""

    def __init__(self, people: list[Person], login: Login, base: str, console: Console) -> None:
        self.login = login
        self.base = base
        self.console = console
        self.first = len(people)
        self.to_come = chain(people, newcomers(self.first))
        self.begin = now()
        self.appointments = Appointments(base, console)
        self.agenda: list[tuple[datetime, Visit, Action]] = []
        self.joined: list[Visit] = []

    def act_until_interrupted(self, processes: list[subprocess.Popen[bytes]]) -> None:
        """Let one after the other sign up or apply, everybody do what they do, and the mail server break down and come back."""
        next_sign_up = now()
        while all(process.poll() is None for process in processes):
            self._let_it_break_down()
            if now() >= next_sign_up:
                self._sign_up(next(self.to_come))
                next_sign_up = now() + (SOON if len(self.joined) < self.first else LATER)
            for entry in [entry for entry in self.agenda if entry[0] <= now()]:
                self.agenda.remove(entry)
                entry[1].do(entry[2])
            if self.joined:
                self.appointments.act(now())
            sleep(0.05)
        raise SystemExit("The site or a worker has ended by itself; see the files *.log in the demo's folder.")

    def _let_it_break_down(self) -> None:
        day = (now() - self.begin) / timedelta(days=1)
        if let_be_down(is_down(day)):
            said = "is down: what fails is tried again, then a dead letter" if is_down(day) else "is back"
            self.console.print(f"Day {day:.0f}: the mail server {said}.", style="yellow", soft_wrap=True)

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
        if len(self.joined) == min(SHOWN, self.first):
            self._print_links()

    def _print_ways_in(self, visit: Visit) -> None:
        """The links to look at first."""
        events = f"{self.base}{reverse('admin:timeline_scheduledtask_changelist')}"
        ways = [
            (f"{events}  upcoming events", f"log in as {self.login.email} with the password {self.login.password}"),
            (f"{self.base}{visit.home}  one person's timeline", visit.person.email),
            (f"{self.base}{reverse('timeline_api:docs')}  the REST API", "after you have logged in there"),
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
    start_process(stack, "install", "manage", "timeline_install_beat").wait()
    prefix = os.environ["QUEUE_PREFIX"] = str(settings.QUEUE_PREFIX)
    app = ("celery", "-A", "project")
    return [
        start_process(stack, "worker", *app, "worker", "-Q", f"{prefix}.default", "-n", "worker@%h", "-c", "2"),
        start_process(stack, "poll-worker", *app, "worker", "-Q", f"{prefix}-poll", "-n", "poll@%h", "-c", "1"),
        start_process(stack, "beat", *app, "beat", "--pidfile", ""),
    ]


def wait_for_site(base: str, site: subprocess.Popen[bytes]) -> None:
    """
    Wait until the site answers, two minutes at most.

    Raises:
        SystemExit: if it does not, with what to do.
    """
    give_up = monotonic() + 120
    while monotonic() < give_up and site.poll() is None:
        try:
            if HttpBrowser(base).get("/").status == 200:
                return
        except (URLError, OSError):
            sleep(0.1)
    raise SystemExit(
        f"The site did not come up at {base}; is the port taken? Try another with --port, and see site.log."
    )
