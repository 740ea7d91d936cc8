"""``manage.py demo``: the product at work, on a fresh SQLite database."""

from __future__ import annotations

import os
import shutil
import sys
from base64 import urlsafe_b64encode as b64encode
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from secrets import token_bytes, token_urlsafe
from time import time
from typing import Any

from celery import current_app
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone
from rich.console import Console

from project.demo.live import live
from project.demo.operators import make_operator
from project.demo.people import Person, people
from project.demo.people import crowd as some
from project.demo.told import tell
from timeline.exceptions import BrokerUnavailable
from timeline.tasks.broker import CelerySender

LEFT = ("mail-is-down", "clock", "running.json", "kill-worker", "worker-is-killed")  # By the demo before.
STORIES = {"trial": 12.0, "settlement": 120.0, "booking": 14_400.0}  # Story → seconds of a day, where a site shows it.


class Command(BaseCommand):
    """Runs the demo."""

    help = "Starts the site and a worker and lets people live through their trial, fast. Begins with an empty database."

    requires_system_checks = ()  # ``handle`` asks for them, in a process that has what the story needs.

    def add_arguments(self, parser: CommandParser) -> None:
        """Take how many, how long, how fast."""
        parser.add_argument(
            "--story",
            choices=STORIES,
            default="trial",
            help="Trials of a chat, a settlement, or bookings on a portal (default: trial).",
        )
        parser.add_argument("--no-server", action="store_true", help="Tell the story in the terminal, and end.")
        parser.add_argument(
            "--users", type=int, default=60, help="How many people have signed up (default: %(default)s)."
        )
        parser.add_argument("--days", type=int, default=40, help="Days told with --no-server (default: %(default)s).")
        parser.add_argument(
            "--celery",
            action="store_true",
            help="Let Celery work, over the broker in BROKER_URL (or Redis on loopback).",
        )
        parser.add_argument("--port", type=int, default=8000, help="Of the site (default: %(default)s).")
        parser.add_argument(
            "--seconds-per-day",
            type=float,
            help="How fast the clock runs (default: 12; of the settlement with a site, 120).",
        )
        parser.add_argument("--transactions", type=int, default=10_000, help="Of a settlement (default: %(default)s).")
        parser.add_argument("--bookings", type=int, default=200, help="Told of a portal (default: %(default)s).")
        parser.add_argument("--within", type=float, default=51, help="Seconds for all bookings (default: %(default)s).")
        parser.add_argument("--seed", type=int, default=1, help="Of the chances of bookings (default: %(default)s).")
        parser.add_argument(
            "--no-keys",
            action="store_true",
            help="Let the payment processor heed no idempotency keys: see what goes wrong.",
        )

    def handle(
        self,
        *args: Any,
        no_server: bool,
        users: int,
        days: int,
        celery: bool,
        port: int,
        seconds_per_day: float | None,
        story: str,
        transactions: int,
        bookings: int,
        within: float,
        seed: int,
        no_keys: bool,
        **options: Any,
    ) -> None:
        """Prepare an empty database, then tell the story or live it."""
        speed = seconds_per_day if seconds_per_day is not None else STORIES[story]
        if min(users, days, transactions, bookings) < 1 or speed <= 0:
            raise CommandError("--users, --days, --seconds-per-day, --transactions and --bookings must be positive.")
        if celery and story != "trial":
            raise CommandError("--celery is for the story of the trial.")
        if celery and not no_server:
            _see_the_broker()
        if story != settings.STORY or (not no_server and "PORTAL_PACE" not in os.environ):
            _begin_anew(story, speed)
        self.check()
        _empty(Path(settings.DATA_DIR))
        call_command("migrate", verbosity=0)
        console = Console()
        crowd = list(people(users) if no_server else some(users))
        if story == "settlement":
            _settle(transactions, crowd, no_server, port, speed, console, with_keys=not no_keys)
        elif story == "booking" and no_server:
            import_module("project.demo.booking").book(bookings, within=within, seed=seed, console=console)
        elif no_server:
            tell(crowd, days, console)
        else:
            live(crowd, port=port, seconds_per_day=speed, celery=celery, console=console)


def _begin_anew(story: str, speed: float) -> None:
    """
    Be this command once more, as a process that has what the story needs installed, its clock, the pace of bookings, and keys
    for webhooks and workers outside. Where a day takes seconds, what is a minute for them in earnest takes one at least.
    """
    os.environ |= {
        "DEMO_STORY": story,
        "DEMO_KEY": token_urlsafe(12),
        "DEMO_CLOCK": f"{time():.3f} {STORIES[story]:g}",
        "PORTAL_PACE": str(max(round(1440 / speed), 1)),
        "SECRET_KEY": settings.SECRET_KEY,
    }
    if story == "trial":
        os.environ["JOBS_KEY"] = token_urlsafe(12)
        if find_spec("standardwebhooks"):
            os.environ["WEBHOOKS_KEY"] = b64encode(token_bytes(32)).decode()
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *sys.argv])  # noqa: S606 (our own command)


def _settle(
    count: int, crowd: list[Person], no_server: bool, port: int, speed: float, console: Console, *, with_keys: bool
) -> None:
    """Tell the story of the settlement, or live it. What they need is installed for this story alone."""
    if no_server:
        import_module("project.demo.settling").settle(count, with_keys=with_keys, console=console)
        return
    login = make_operator(now=timezone.now())
    nights = import_module("project.demo.nights")
    nights.live(crowd, login, count=count, port=port, seconds_per_day=speed, with_keys=with_keys, console=console)


def _see_the_broker() -> None:
    """Have the processes use this broker, if it answers."""
    url = os.environ.setdefault("BROKER_URL", "redis://127.0.0.1:6379/0")
    current_app.conf.update(broker_url=url)
    try:
        CelerySender().connect()
    except BrokerUnavailable as error:
        raise CommandError(f"{error} Start one, or name another in BROKER_URL.") from None


def _empty(folder: Path) -> None:
    """Begin anew: the demo's own database, mails and logs go."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in [*folder.glob("site.sqlite3*"), *folder.glob("*.log"), *(folder / name for name in LEFT)]:
        file.unlink(missing_ok=True)
    for name in ("mail", "documents"):
        shutil.rmtree(folder / name, ignore_errors=True)
