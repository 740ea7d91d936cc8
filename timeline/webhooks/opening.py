"""Open endpoints: see that what is asked for may be, and give the secret, once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.core.exceptions import ValidationError

from timeline.webhooks.connect import NotCalled, check_url
from timeline.webhooks.facts import check_topics
from timeline.webhooks.models import Endpoint, Ordered
from timeline.webhooks.secrets import encrypted, new_secret


def check_endpoint(url: str, topics: object) -> None:
    """See that an endpoint may be; its name is looked up at each delivery. ``ValidationError`` of ``url`` and ``topics``."""
    problems: dict[str, list[str]] = {}
    try:
        check_url(url)
    except NotCalled as refused:
        problems["url"] = [str(refused)]
    try:
        check_topics(topics)
    except ValidationError as error:
        problems["topics"] = list(error.messages)
    if problems:
        raise ValidationError(problems)


def open_endpoint(
    *, url: str, topics: Sequence[str], description: str = "", ordered: str = Ordered.ENTITY, now: datetime, using: str
) -> tuple[Endpoint, str]:
    """Make an endpoint; it, and its secret, which is shown to nobody ever again. ``ValidationError`` of what is wrong."""
    check_endpoint(url, list(topics))
    secret = new_secret()
    endpoint = Endpoint(
        url=url,
        topics=list(topics),
        description=description,
        ordered=Ordered(ordered),
        secret=encrypted(secret),
        created_at=now,
    )
    endpoint.clean_fields()
    endpoint.save(using=using, force_insert=True)
    return endpoint, secret
