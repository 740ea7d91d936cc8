"""``manage.py timeline_worker``: poll and run in one process."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import gettext as _

from timeline.conf import get_settings
from timeline.management.shared import add_database_option, telling_tasks, work_until_stopped
from timeline.worker import Worker
from timeline.worker.process import collecting_seldom


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
        with collecting_seldom(), ExitStack() as stack:
            if options["verbosity"] > 1:
                stack.enter_context(telling_tasks(self._tell))
            self.stdout.write(_("Worker %(name)s polls every %(seconds)g s. Ctrl-C stops it.") % said)
            self.stdout.flush()  # Into a file or a pipe, it would be seen at the end only.
            work_until_stopped(worker)
        self.stdout.write(_("Worker %(name)s stopped. Tasks run: %(count)d.") % {**said, "count": worker.ran})

    def _tell(self, lines: str) -> None:
        self.stdout.write(lines)
        self.stdout.flush()  # Whoever reads along through a pipe sees each as it comes.
