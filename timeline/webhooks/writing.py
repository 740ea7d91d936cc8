"""Write deliveries: of any number of facts to all endpoints that want them, in one statement and without a lock."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connections

from timeline.dialects import dialect_of
from timeline.webhooks.bodies import Fact

PACKAGE: Final = "timeline.webhooks"
KEPT_UP: Final = timedelta(days=3)  # So long a delivery is tried.


def write_deliveries(facts: Sequence[Fact], *, now: datetime, using: str) -> None:
    """
    Write what is to be sent, in the caller's transaction. Of what an endpoint is told already, nothing is written.

    Args:
        facts: In the order in which they are sent.
        now: Story time.
        using: Database alias.
    """
    connection = connections[using]
    parameters: dict[str, Any] = {
        "topics": json.dumps(sorted({topic for fact in facts for topic in fact.topics})),
        "facts": json.dumps([_as_data(fact) for fact in facts], ensure_ascii=False),
        "now": connection.ops.adapt_datetimefield_value(now),
        "until": connection.ops.adapt_datetimefield_value(now + KEPT_UP),
    }
    with connection.cursor() as cursor:
        cursor.execute(dialect_of(using).sql("write_deliveries", package=PACKAGE), parameters)


def _as_data(fact: Fact) -> dict[str, Any]:
    return {
        "source": fact.source.hex,
        "topic": fact.topics[0],
        "topics": fact.topics,
        "label": fact.entity_label,
        "entity": fact.entity_id,
        "body": fact.body,
    }
