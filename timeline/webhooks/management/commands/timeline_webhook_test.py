"""``manage.py timeline_webhook_test ENDPOINT``: send a signed sample, and print the answer."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import gettext as _

from timeline.clocks import story_now
from timeline.management.shared import add_database_option
from timeline.webhooks.models import Endpoint
from timeline.webhooks.send import send_sample

MOST_NAMED = 10


class Command(BaseCommand):
    """Sends one sample."""

    help = "Sends a signed sample to an endpoint and prints the answer. Nothing of it is stored."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the endpoint and the database."""
        parser.add_argument("endpoint", help="Id of the endpoint.")
        add_database_option(parser)

    def handle(self, *args: Any, endpoint: str, database: str, **options: Any) -> None:
        """Send it."""
        now = story_now(database)
        try:
            found = Endpoint.objects.using(database).get(pk=UUID(endpoint))
            answer = send_sample(found, now=now)
        except (ValueError, Endpoint.DoesNotExist):
            raise CommandError(_none_such(endpoint, database)) from None
        except ImproperlyConfigured as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{answer.status or '-'}, {answer.duration_ms} ms")
        if answer.text:
            self.stdout.write(answer.text)
        if answer.error:
            raise CommandError(answer.error)


def _none_such(given: str, database: str) -> str:
    """Say which there are."""
    known = [f"{one.pk} ({one})" for one in Endpoint.objects.using(database).order_by("-pk")[:MOST_NAMED]]
    if not known:
        return _("endpoint: there is none yet. Open one in the admin or by the API.")
    return _("endpoint: there is none with the id %(given)s. Known: %(known)s.") % {
        "given": given,
        "known": ", ".join(known),
    }
