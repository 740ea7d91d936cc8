"""``manage.py timeline_poll``: beat's poll as a process of its own."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import gettext as _

from timeline.conf import get_settings
from timeline.management.shared import add_database_option, work_until_stopped
from timeline.worker import Poller

try:
    from timeline.tasks.broker import CelerySender, has_broker
except ModuleNotFoundError as error:
    problem = _('timeline_poll sends to Celery workers; %(error)s. Install the extra "celery".')
    raise CommandError(problem % {"error": error}) from error


class Command(BaseCommand):
    """Polls until SIGTERM or SIGINT."""

    help = "Hands due tasks to Celery workers, as beat would. Any number may run. Stops cleanly on SIGTERM and Ctrl-C."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the database."""
        add_database_option(parser)

    def handle(self, *args: Any, database: str, **options: Any) -> None:
        """Poll until told to stop."""
        if not has_broker():
            problem = _("The Celery app has no broker. Set CELERY_BROKER_URL; without one, run timeline_worker.")
            raise CommandError(problem)
        poller = Poller(database, CelerySender())
        said = {"name": poller.name, "seconds": get_settings().POLL_INTERVAL.total_seconds()}
        self.stdout.write(_("Poller %(name)s polls every %(seconds)g s. Ctrl-C stops it.") % said)
        self.stdout.flush()  # Into a file or a pipe, it would be seen at the end only.
        work_until_stopped(poller)
        self.stdout.write(_("Poller %(name)s stopped. Tasks sent: %(count)d.") % {**said, "count": poller.sent})
