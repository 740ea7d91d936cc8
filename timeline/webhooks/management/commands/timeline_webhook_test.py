"""``manage.py timeline_webhook_test ENDPOINT``: send a signed sample, and print the answer."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS
from django.utils.translation import gettext as _

from timeline.clocks import story_now
from timeline.webhooks.models import Endpoint
from timeline.webhooks.sampling import send_sample


class Command(BaseCommand):
    """Sends one sample."""

    help = "Sends a signed sample to an endpoint and prints the answer. Nothing of it is stored."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the endpoint and the database."""
        parser.add_argument("endpoint", help="Id of the endpoint.")
        parser.add_argument("--database", default=DEFAULT_DB_ALIAS, help="Database alias (default: %(default)s).")

    def handle(self, *args: Any, endpoint: str, database: str, **options: Any) -> None:
        """Send it."""
        now = story_now(database)
        try:
            found = Endpoint.objects.using(database).get(pk=UUID(endpoint))
            answer = send_sample(found, now=now)
        except (ValueError, Endpoint.DoesNotExist):
            raise CommandError(_("There is no such endpoint.")) from None
        except ImproperlyConfigured as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{answer.status or '-'}, {answer.duration_ms} ms")
        if answer.text:
            self.stdout.write(answer.text)
        if answer.error:
            raise CommandError(answer.error)
