"""The story lived: a site and a worker as processes, people who keep coming, what goes wrong, and a clock that runs fast."""

from __future__ import annotations

import os
import subprocess
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from time import monotonic, sleep
from urllib.error import URLError

from django.apps import apps
from django.conf import settings
from django.urls import reverse
from rich.console import Console

from project.accounts.links import timeline_token
from project.demo import jobs
from project.demo.appointments import Appointments
from project.demo.browsers import HttpBrowser, Visit
from project.demo.clock import STANDING, SettableClock, is_standing, now
from project.demo.counting import Counter
from project.demo.joining import tell
from project.demo.mailing import let_be_down
from project.demo.operators import Login, make_operator
from project.demo.outsiders import start_portal
from project.demo.past import Joined, live_the_past
from project.demo.people import Action, Person, newcomers
from project.demo.processes import Interrupted, interruptible, start_process
from project.demo.worker import Worker
from timeline.models import Identity

SHOWN = 8  # So many links are printed.
EVERY = timedelta(hours=12)  # Somebody signs up.
OUTAGES = (27, 14, 1)  # The mail server is down on this day, every so many days, for so many days.


def live(people: list[Person], *, port: int, seconds_per_day: float, celery: bool, console: Console) -> None:
    """
    Run the site and what works for it until interrupted; leave nothing running. It begins with a past of some weeks.

    Args:
        people: Who has signed up; others come.
        port: Of the site, on the loopback address.
        seconds_per_day: How fast story time runs.
        celery: Whether Celery's workers and beat work for it, rather than one embedded worker.
        console: Where it is shown.
    """
    os.environ["SECRET_KEY"] = settings.SECRET_KEY
    try:
        with interruptible(), ExitStack() as stack:
            clock = SettableClock(Path(settings.DATA_DIR) / "clock", seconds_per_day=STANDING, begin=datetime.now(UTC))
            stack.callback(clock.run_at, STANDING)  # Commands that come later are told when it ended.
            start_portal(stack, slow=0.02)
            # Which gives static files.
            serve = ("manage", "runserver", f"127.0.0.1:{port}", "--noreload", "--insecure")
            site = start_process(stack, "site", *serve)
            login = make_operator(now=now())
            if jobs.can_be_put():
                jobs.make_worker(now=now())
            joined = live_the_past(people, until=now())
            base = f"http://127.0.0.1:{port}"
            wait_for_site(base, site)
            tell(Path(settings.DATA_DIR))
            _print_ways_in(base, login, joined, console)
            worker, others = _celery(stack) if celery else (Worker(stack, "manage", "timeline_worker"), [])
            _wait_for_polls(worker)
            clock.run_at(seconds_per_day)
            console.print(
                f"Site {base}  worker pid {worker.pid}  1 day = {seconds_per_day:g} s  "
                f"(Ctrl-C, or kill {os.getpid()}, stops all of it)\n",
                soft_wrap=True,
            )
            if apps.is_installed("timeline.webhooks"):
                shown = import_module("project.demo.hooks").start_webhooks(stack)
                console.print(f"  {shown}  webhooks that came, each verified\n", highlight=False, soft_wrap=True)
            tell(Path(settings.DATA_DIR))
            _Crowd(joined, worker, base, console).act_until_interrupted([site, *others])
    except Interrupted:
        console.print("\nStopped: the site and all that worked for it have ended.")


def _wait_for_polls(worker: Worker) -> None:
    """Wait until somebody polls, two minutes at most: the clock stands still for so long."""
    give_up = monotonic() + 120
    while monotonic() < give_up and not worker.has_ended():
        if Identity.objects.filter(polled_at__isnull=False).exists():
            return
        sleep(0.1)


def _print_ways_in(base: str, login: Login, joined: list[Joined], console: Console) -> None:
    """The links to look at: first the page that has all."""
    key = os.environ.get("DEMO_KEY", "")
    console.print("Look here first:", style="bold")
    console.print(f"  {base}{reverse('demo')}?key={key}\n", highlight=False, soft_wrap=True)
    events = f"{base}{reverse('admin:timeline_scheduledtask_changelist')}"
    ways = [
        (f"{events}  upcoming events", f"log in as {login.email} with the password {login.password}"),
        (f"{base}{reverse('timeline_api:docs')}  the REST API", "after you have logged in there"),
    ]
    for link, note in ways:
        console.print(f"  {link}, {note}", highlight=False, soft_wrap=True)
    console.print("\nTheir timelines; the rows move by themselves:", style="bold")
    for one in joined[:SHOWN]:
        link = f"{base}{reverse('my-timeline', args=[timeline_token(one.user)])}"
        console.print(f"  {link}  {one.person.email} {one.person.habit}", highlight=False, soft_wrap=True)
    console.print("\nIn a second terminal, on the same clock:", style="bold")
    console.print("  .venv/bin/python manage.py timeline_explain ada@example.com", highlight=False, soft_wrap=True)
    if jobs.can_be_put():
        console.print(f"\nA worker in Node, which takes jobs over HTTP: {jobs.needs()}", style="bold", soft_wrap=True)
        console.print(f"  {jobs.command(base)}", highlight=False, soft_wrap=True)
    console.print()


def is_down(day: float) -> bool:
    """Whether the mail server is down, so many days after the story began."""
    first, every, long = OUTAGES
    return day >= first and (day - first) % every < long


class _Crowd:
    """People at the site, each at their own time; and the mail server, which breaks down now and then."""

    def __init__(self, joined: list[Joined], worker: Worker, base: str, console: Console) -> None:
        self.worker, self.base, self.console = worker, base, console
        self.to_come = newcomers(len(joined))
        self.begin = now()
        self.appointments = Appointments(base, console)
        self.agenda: list[tuple[datetime, Visit, Action]] = []
        for one in joined:
            home = reverse("my-timeline", args=[timeline_token(one.user)])
            visit = Visit(one.person, HttpBrowser(base), home=home)
            self.agenda += [(at, visit, action) for at, action in one.ahead(self.begin)]
        self.was_down = False

    def act_until_interrupted(self, processes: list[subprocess.Popen[bytes]]) -> None:
        """Let people sign up, apply and do what they do, the mail server break down and come back, and figures be counted."""
        next_sign_up, counter = now() + EVERY, Counter()
        while not self.worker.has_ended() and all(process.poll() is None for process in processes):
            self._let_it_break_down()
            if said := self.worker.look():
                self.console.print(said, style="red", highlight=False, soft_wrap=True)
            if now() >= next_sign_up:
                self._sign_up(next(self.to_come))
                next_sign_up = now() + EVERY
            for entry in [entry for entry in self.agenda if entry[0] <= now()]:
                self.agenda.remove(entry)
                entry[1].do(entry[2])
            if not is_standing():
                self.appointments.act(now())
            counter.look()
            sleep(0.05)
        raise SystemExit("The site or a worker has ended by itself; see the files *.log in the demo's folder.")

    def _let_it_break_down(self) -> None:
        day = (now() - self.begin) / timedelta(days=1)
        is_so = is_down(day)
        if is_so != self.was_down and let_be_down(is_so):
            said = "is down: what fails is tried again, then a dead letter" if is_so else "is back"
            self.console.print(f"Day {day:.0f}: the mail server {said}.", style="yellow", soft_wrap=True)
        self.was_down = is_so

    def _sign_up(self, person: Person) -> None:
        visit = Visit(person, HttpBrowser(self.base))
        visit.sign_up()
        at = now()
        self.agenda += [(at + timedelta(days=day), visit, action) for day, action in person.actions]


def _celery(stack: ExitStack) -> tuple[Worker, list[subprocess.Popen[bytes]]]:
    """Start a worker for tasks, one for polls alone, and beat, which polls by the schedule in its tables."""
    start_process(stack, "install", "manage", "timeline_install_beat").wait()
    prefix = os.environ["QUEUE_PREFIX"] = str(settings.QUEUE_PREFIX)
    app = ("celery", "-A", "project")
    worker = Worker(stack, *app, "worker", "-Q", f"{prefix}.default", "-n", "worker@%h", "-c", "2")
    return worker, [
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
