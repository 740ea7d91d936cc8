"""``manage.py timeline_worker``: poll and run in one process."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import gettext as _

from timeline.conf import get_settings
from timeline.management.options import add_database_option
from timeline.management.stopping import work_until_stopped
from timeline.worker import Worker
from timeline.worker.collecting import collecting_seldom


class Command(BaseCommand):
    """Runs a worker until SIGTERM or SIGINT."""

    help = "Polls for due tasks and runs them, in one process and with no broker. Stops cleanly on SIGTERM and Ctrl-C."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the database, the worker's name and its threads."""
        add_database_option(parser)
        parser.add_argument("--name", default="", help="Shown on the rows it runs (default: host name and process id).")
        parser.add_argument(
            "--threads", type=int, default=1, help="Handlers run at the same time (default: %(default)s)."
        )

    def handle(self, *args: Any, database: str, name: str, threads: int, **options: Any) -> None:
        """Work until told to stop."""
        if threads < 1:
            raise CommandError(_("--threads is %(threads)d. Give 1 or more.") % {"threads": threads})
        worker = Worker(database, name, threads=threads)
        said = {"name": worker.name, "seconds": get_settings().POLL_INTERVAL.total_seconds()}
        with collecting_seldom():
            self.stdout.write(_("Worker %(name)s polls every %(seconds)g s. Ctrl-C stops it.") % said)
            work_until_stopped(worker)
        self.stdout.write(_("Worker %(name)s stopped; it ran %(count)d tasks.") % {**said, "count": worker.ran})
