"""Send a sample: signed as deliveries are, and stored nowhere."""

from __future__ import annotations

import asyncio
from datetime import datetime

from timeline.ids import uuid7
from timeline.webhooks.bodies import as_body
from timeline.webhooks.connecting import make_pool
from timeline.webhooks.models import Endpoint, message_id
from timeline.webhooks.posting import Answer, Message, post
from timeline.webhooks.sending import signers_of


def send_sample(endpoint: Endpoint, *, now: datetime) -> Answer:
    """
    Send a sample, disabled endpoint or not, and wait for the answer.

    Raises:
        ImproperlyConfigured: if no key opens the secret.
    """
    body = as_body("webhook.test", now, {"endpoint": str(endpoint.pk)})
    message = Message(message_id(endpoint.pk, uuid7()), endpoint.url, body, signers_of(endpoint, now))
    return asyncio.run(_once(message))


async def _once(message: Message) -> Answer:
    async with make_pool() as pool:
        return await post(message, pool)
