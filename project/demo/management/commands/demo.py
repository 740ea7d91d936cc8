"""``manage.py demo``: the product at work, on a fresh SQLite database."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from celery import current_app
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone
from rich.console import Console

from project.demo.live import live
from project.demo.operators import make_operator
from project.demo.people import people
from project.demo.told import tell
from timeline.exceptions import BrokerUnavailable
from timeline.tasks.sending import CelerySender


class Command(BaseCommand):
    """Runs the demo."""

    help = "Starts the site and a worker and lets people live through their trial, fast. Begins with an empty database."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take how many, how long, how fast."""
        parser.add_argument("--no-server", action="store_true", help="Tell the story in the terminal, and end.")
        parser.add_argument("--users", type=int, default=24, help="How many people sign up (default: %(default)s).")
        parser.add_argument("--days", type=int, default=40, help="Days told with --no-server (default: %(default)s).")
        parser.add_argument(
            "--celery",
            action="store_true",
            help="Let Celery work, over the broker in BROKER_URL (or Redis on loopback).",
        )
        parser.add_argument("--port", type=int, default=8000, help="Of the site (default: %(default)s).")
        parser.add_argument(
            "--seconds-per-day", type=float, default=2, help="How fast the clock runs (default: %(default)s)."
        )

    def handle(
        self,
        *args: Any,
        no_server: bool,
        users: int,
        days: int,
        celery: bool,
        port: int,
        seconds_per_day: float,
        **options: Any,
    ) -> None:
        """Prepare an empty database, then tell the story or live it."""
        if users < 1 or days < 1 or seconds_per_day <= 0:
            raise CommandError("--users, --days and --seconds-per-day must be positive.")
        _empty(Path(settings.DATA_DIR))
        call_command("migrate", verbosity=0)
        console = Console()
        crowd = list(people(users))
        if no_server:
            tell(crowd, days, console)
        else:
            if celery:
                _see_the_broker()
            login = make_operator(now=timezone.now())
            live(crowd, login, port=port, seconds_per_day=seconds_per_day, celery=celery, console=console)


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
    for file in [*folder.glob("site.sqlite3*"), *folder.glob("*.log")]:
        file.unlink()
    shutil.rmtree(folder / "mail", ignore_errors=True)
