"""Record: what came of deliveries, any number in one transaction, and what that means for their endpoints."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections

from timeline.dialects import dialect_of
from timeline.store.isolating import atomic
from timeline.webhooks.disabling import disable
from timeline.webhooks.models import Code, Delivery, Disabled, Endpoint, State
from timeline.webhooks.pacing import PAUSED_AFTER, is_given_up, probe_after, retry_after
from timeline.webhooks.posting import Answer
from timeline.webhooks.writing import PACKAGE

GONE = 410


@dataclass(frozen=True, slots=True)
class Outcome:
    """
    What came of a delivery.

    Args:
        delivery: As it was claimed.
        answer: Of the receiver.
    """

    delivery: Delivery
    answer: Answer


def record(outcomes: Sequence[Outcome], endpoints: Mapping[UUID, Endpoint], *, now: datetime, using: str) -> int:
    """
    Write what came of deliveries, with a line of the log each; in the order in which they ended.

    What failed is tried again later, and what is behind it in its order waits for it. What was claimed anew meanwhile, or
    cancelled, is left as it is.

    Args:
        outcomes: Any number.
        endpoints: Of all of them, locked: see ``lock_endpoints``. In the same transaction.
        now: Story time.
        using: Database alias.

    Returns:
        How many were written.
    """
    if not outcomes:
        return 0
    dialect, connection = dialect_of(using), connections[using]
    rows = [_as_data(outcome, now, using) for outcome in outcomes]
    parameters = {
        "outcomes": json.dumps(rows, ensure_ascii=False),
        "now": connection.ops.adapt_datetimefield_value(now),
    }
    with atomic(using=using):
        with connection.cursor() as cursor:
            cursor.execute(dialect.sql("record", package=PACKAGE), parameters)
            written = {int(row[0]) for row in cursor.fetchall()}
            kept = [row for row in rows if row["id"] in written]
            parameters["outcomes"] = json.dumps(kept, ensure_ascii=False)
            if not dialect.has_set_statements:
                cursor.execute(dialect.sql("log_tries", package=PACKAGE), parameters)
            if any(row["state"] == State.WAITING for row in kept):
                cursor.execute(dialect.sql("wait_behind", package=PACKAGE), parameters)
        _note(endpoints, [outcome for outcome in outcomes if outcome.delivery.pk in written], now, using)
    return len(written)


def _as_data(outcome: Outcome, now: datetime, using: str) -> dict[str, Any]:
    delivery, answer = outcome.delivery, outcome.answer
    attempts = delivery.attempts + 1
    due_at = now + retry_after(attempts)
    over = due_at > delivery.give_up_at
    state = State.DELIVERED if answer.is_delivered else State.FAILED if over else State.WAITING
    adapt = connections[using].ops.adapt_datetimefield_value
    is_ended = state != State.WAITING
    return {
        "id": delivery.pk,
        "token": None if delivery.token is None else delivery.token.hex,
        "endpoint": delivery.endpoint_id.hex,
        "order_key": delivery.order_key,
        "state": str(state),
        "code": str(Code.LATE) if state == State.FAILED else "",
        "attempts": attempts,
        "due_at": str(adapt(delivery.due_at if is_ended else due_at)),
        "ended_at": str(adapt(now)) if is_ended else None,
        "status": answer.status,
        "answer": answer.text,
        "error": answer.error,
        "duration_ms": answer.duration_ms,
    }


def _note(endpoints: Mapping[UUID, Endpoint], outcomes: Iterable[Outcome], now: datetime, using: str) -> None:
    """Count what failed in a row, of endpoints that failed now or before; let go of what waits there, or disable it."""
    ended: dict[UUID, list[Answer]] = defaultdict(list)
    for outcome in outcomes:
        ended[outcome.delivery.endpoint_id].append(outcome.answer)
    for key, answers in sorted(ended.items()):
        if endpoints[key].failures or not all(answer.is_delivered for answer in answers):
            _note_one(endpoints[key], answers, now, using)


def _note_one(endpoint: Endpoint, answers: Sequence[Answer], now: datetime, using: str) -> None:
    if not endpoint.is_enabled:
        return
    was_paused = endpoint.is_paused
    for answer in answers:
        endpoint.failures = 0 if answer.is_delivered else endpoint.failures + 1
        endpoint.failing_since = None if answer.is_delivered else endpoint.failing_since or now
    endpoint.probe_at = now + probe_after(endpoint.failures) if endpoint.failures >= PAUSED_AFTER else None
    endpoint.save(using=using, update_fields=["failures", "failing_since", "probe_at"])
    if any(answer.status == GONE for answer in answers):
        disable(endpoint, Disabled.GONE, now=now, using=using)
    elif is_given_up(endpoint.failing_since, endpoint.failures, now):
        disable(endpoint, Disabled.FAILING, now=now, using=using)
    elif was_paused and not endpoint.failures:
        waiting = Delivery.objects.using(using).waiting().filter(endpoint=endpoint, due_at__gt=now)
        waiting.update(due_at=now)
