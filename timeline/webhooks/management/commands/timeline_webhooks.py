"""``manage.py timeline_webhooks``: send deliveries, in a process of its own."""

from __future__ import annotations

import signal
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from timeline.management.shared import add_database_option
from timeline.webhooks.secrets import check_keys
from timeline.webhooks.send import WebhookSender


class Command(BaseCommand):
    """Sends until SIGTERM or SIGINT."""

    help = "Sends what webhooks are told. Any number may run, beside the workers. Stops cleanly on SIGTERM and Ctrl-C."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the database, and whether to end."""
        add_database_option(parser)
        parser.add_argument("--once", action="store_true", help="Send what is due now, and end.")

    def handle(self, *args: Any, database: str, once: bool, **options: Any) -> None:
        """Send."""
        try:
            check_keys()
        except ImproperlyConfigured as error:
            raise CommandError(str(error)) from None
        sender = WebhookSender(database)
        if once:
            sender.drain()
        else:
            before = {number: signal.signal(number, lambda *_args: sender.stop()) for number in _SIGNALS}
            self.stdout.write(_("Sending webhooks. Ctrl-C stops it."))
            self.stdout.flush()  # Into a file or a pipe, it would be seen at the end only.
            try:
                sender.work()
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)
        said = ngettext("%(count)d delivery was tried.", "%(count)d deliveries were tried.", sender.sent)
        self.stdout.write(said % {"count": sender.sent})


_SIGNALS = (signal.SIGTERM, signal.SIGINT)
