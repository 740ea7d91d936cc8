"""``manage.py timeline_poll``: beat's poll as a process of its own."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS

from timeline.conf import get_settings
from timeline.management.stopping import work_until_stopped
from timeline.worker import Poller

try:
    from timeline.tasks.hinting import has_broker
    from timeline.tasks.sending import CelerySender
except ModuleNotFoundError as error:
    raise CommandError(f'timeline_poll sends to Celery workers; {error}. Install the extra "celery".') from error


class Command(BaseCommand):
    """Polls until SIGTERM or SIGINT."""

    help = "Hands due tasks to Celery workers, as beat would. Any number may run. Stops cleanly on SIGTERM and Ctrl-C."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the database."""
        parser.add_argument("--database", default=DEFAULT_DB_ALIAS, help="Database alias (default: %(default)s).")

    def handle(self, *args: Any, database: str, **options: Any) -> None:
        """Poll until told to stop."""
        if not has_broker():
            raise CommandError("The Celery app has no broker. Set CELERY_BROKER_URL; without one, run timeline_worker.")
        poller = Poller(database, CelerySender())
        interval = get_settings().POLL_INTERVAL.total_seconds()
        self.stdout.write(f"Poller {poller.name} polls every {interval:g} s. Ctrl-C stops it.")
        work_until_stopped(poller)
        self.stdout.write(f"Poller {poller.name} stopped; it sent {poller.sent} tasks.")
