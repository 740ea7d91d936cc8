"""``manage.py timeline_webhook_test ENDPOINT``: send a signed sample, and print the answer."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS
from django.utils.translation import gettext as _

from timeline.clocks import story_now
from timeline.ids import uuid7
from timeline.webhooks.bodies import as_body
from timeline.webhooks.connecting import make_pool
from timeline.webhooks.models import Endpoint, message_id
from timeline.webhooks.posting import Answer, Message, post
from timeline.webhooks.sending import signers_of


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
            signers = signers_of(found, now)
        except (ValueError, Endpoint.DoesNotExist):
            raise CommandError(_("There is no such endpoint.")) from None
        except ImproperlyConfigured as error:
            raise CommandError(str(error)) from None
        body = as_body("webhook.test", now, {"endpoint": str(found.pk)})
        answer = asyncio.run(_once(Message(message_id(found.pk, uuid7()), found.url, body, signers)))
        self.stdout.write(f"{answer.status or '-'}, {answer.duration_ms} ms")
        if answer.text:
            self.stdout.write(answer.text)
        if answer.error:
            raise CommandError(answer.error)


async def _once(message: Message) -> Answer:
    async with make_pool() as pool:
        return await post(message, pool)
