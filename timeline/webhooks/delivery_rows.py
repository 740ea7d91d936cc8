"""Deliveries as rows: claim what is due, give back what was not sent, and write what came of it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any, Final
from uuid import UUID, uuid4

from django.db import connections
from django.db.models import DateTimeField, Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.expressions import RawSQL
from django.db.models.functions import Greatest

from timeline.clocks import MachineTime
from timeline.dialects import dialect_of
from timeline.store.transactions import atomic
from timeline.webhooks.conf import get_settings
from timeline.webhooks.disabling import disable, lock_endpoints
from timeline.webhooks.facts import PACKAGE
from timeline.webhooks.models import Code, Delivery, Disabled, Endpoint, State
from timeline.webhooks.post import PostOutcome
from timeline.webhooks.retry import PAUSED_AFTER, is_given_up, is_probe_due, probe_after, retry_after

# How long what is claimed is nobody else's, beside the time that a delivery may take: longer than it may wait (``OLD``).
LEASE: Final = timedelta(seconds=50)
MOST_ENDPOINTS: Final = 100  # In one claim. Those whose deliveries have waited longest come first.
AGAIN: Final = timedelta(seconds=1)  # After which one is looked at again that another process has the one before of.

Room = Callable[[Endpoint], int]

GONE = 410


@dataclass(frozen=True, slots=True)
class Claimed:
    """What is to be sent. Only who has the ``token`` may write what came of it. ``held_up``: what has one before it."""

    token: UUID
    deliveries: list[Delivery]
    held_up: set[tuple[UUID, str]]


def claim(room: Room, *, now: datetime, using: str) -> Claimed:
    """
    Claim deliveries, in three statements whatever their number; one, if nothing is due; two more where one is paused.

    What has one before it in its order that is not claimed here is left. ``room`` says how many an endpoint may have.
    """
    token = uuid4()
    with atomic(using=using):
        endpoints = {endpoint.pk: endpoint for endpoint in _with_due(now, using)}
        paused = [key for key, one in endpoints.items() if one.is_paused]
        endpoints = {key: one for key, one in endpoints.items() if not one.is_paused} | _probed(paused, now, using)
        rooms = {key: most for key, one in endpoints.items() if (most := _room(one, room)) > 0}
        if not rooms:
            return Claimed(token, [], set())
        free, held_up = _parted(_lock(rooms, now, using))
        _put_off(held_up, now, using)
        if free:
            taken = Delivery.objects.using(using).filter(pk__in=[delivery.pk for delivery in free])
            taken.update(token=token, leased_until=MachineTime(LEASE + get_settings().TIMEOUT))
            _note_probes({delivery.endpoint_id for delivery in free}, endpoints, now, using)
    for delivery in free:
        delivery.endpoint = endpoints[delivery.endpoint_id]
    return Claimed(token, free, {(delivery.endpoint_id, delivery.order_key) for delivery in held_up})


def _unleased() -> Q:
    return Q(leased_until=None) | Q(leased_until__lt=MachineTime(once=True))


def _with_due(now: datetime, using: str) -> QuerySet[Endpoint]:
    due = Delivery.objects.filter(endpoint=OuterRef("pk"), state=State.WAITING, due_at__lte=now).filter(_unleased())
    first = Subquery(due.order_by("due_at").values("due_at")[:1], output_field=DateTimeField())
    endpoints = Endpoint.objects.using(using).filter(disabled_at=None)
    return (
        endpoints.filter(Q(quiet_until=None) | Q(quiet_until__lte=now))
        .annotate(first_due_at=first)
        .exclude(first_due_at__isnull=True)
        .order_by("first_due_at")[:MOST_ENDPOINTS]
    )


def _probed(keys: Sequence[UUID], now: datetime, using: str) -> dict[UUID, Endpoint]:
    """Those that are paused and may be tried, locked before their deliveries: not what somebody else is about to try."""
    if not keys:
        return {}
    locked = lock_endpoints(keys, skip_locked=True, using=using)
    return {key: one for key, one in locked.items() if one.is_paused and is_probe_due(one, now)}


def _room(endpoint: Endpoint, room: Room) -> int:
    """How many an endpoint may have; of one that is paused, one at most."""
    return min(1, room(endpoint)) if endpoint.is_paused else room(endpoint)


def _lock(rooms: Mapping[UUID, int], now: datetime, using: str) -> QuerySet[Delivery]:
    """The first due of each endpoint, locked; locked ones are passed over. ``behind``: the one before in its order."""
    connection, each = connections[using], dialect_of(using).sql("first_due", package=PACKAGE)
    moment = connection.ops.adapt_datetimefield_value(now)
    column = Endpoint._meta.pk
    parameters: list[Any] = []
    for key, most in rooms.items():
        parameters += [column.get_db_prep_value(key, connection), moment, most]
    some = RawSQL(" UNION ALL ".join([each] * len(rooms)), parameters)  # noqa: S611 (parameters only)
    before = Delivery.objects.filter(
        endpoint=OuterRef("endpoint"), order_key=OuterRef("order_key"), state=State.WAITING, pk__lt=OuterRef("pk")
    )
    deliveries = Delivery.objects.using(using).waiting().filter(_unleased(), pk__in=some, due_at__lte=now)
    return deliveries.annotate(behind=Subquery(before.order_by("-pk").values("pk")[:1])).order_by("pk").locked()


def _parted(deliveries: Iterable[Delivery]) -> tuple[list[Delivery], list[Delivery]]:
    """Deliveries that can be sent, and those behind one that is under way, not due, or locked elsewhere."""
    free: list[Delivery] = []
    held_up: list[Delivery] = []
    keys: set[int | None] = {None}
    for delivery in deliveries:
        if delivery.behind in keys:  # type: ignore[attr-defined]
            keys.add(delivery.pk)
            free.append(delivery)
        else:
            held_up.append(delivery)
    return free, held_up


def _put_off(held_up: Sequence[Delivery], now: datetime, using: str) -> None:
    """Look at them again when the one before is due, or soon if that is under way."""
    if not held_up:
        return
    before = Delivery.objects.filter(
        endpoint=OuterRef("endpoint"), order_key=OuterRef("order_key"), state=State.WAITING, pk__lt=OuterRef("pk")
    )
    last = Subquery(before.order_by("-due_at").values("due_at")[:1], output_field=DateTimeField())
    rows = Delivery.objects.using(using).filter(pk__in=[delivery.pk for delivery in held_up])
    rows.filter(Exists(before)).update(due_at=Greatest(last, now + AGAIN))


def _note_probes(keys: set[UUID], endpoints: Mapping[UUID, Endpoint], now: datetime, using: str) -> None:
    """One process tries what is paused: the others wait for the next time. It has their locks."""
    for endpoint in (endpoints[key] for key in sorted(keys) if endpoints[key].is_paused):
        Endpoint.objects.using(using).filter(pk=endpoint.pk).update(probe_at=now + probe_after(endpoint.failures))


def let_go(held_up: set[tuple[UUID, str]], *, now: datetime, using: str) -> None:
    """What was put off is due, as what was before it has arrived."""
    if held_up:
        whose = [Q(endpoint=endpoint, order_key=order_key) for endpoint, order_key in sorted(held_up)]
        rows = Delivery.objects.using(using).waiting().filter(reduce(or_, whose), due_at__gt=now, attempts=0)
        rows.update(due_at=now)


def release(keys: Sequence[int], token: UUID | None, *, using: str) -> None:
    """Give back what was claimed and not sent."""
    if keys:
        mine = Delivery.objects.using(using).waiting().filter(pk__in=keys, token=token)
        mine.update(leased_until=None, token=None)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a delivery."""

    delivery: Delivery
    answer: PostOutcome


def record(outcomes: Sequence[Outcome], endpoints: Mapping[UUID, Endpoint], *, now: datetime, using: str) -> int:
    """
    Write what came of deliveries, in the order in which they ended, each with a log entry; how many.

    What failed is tried later, and what is behind it waits. Claimed anew or cancelled ones stay as they are.
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
    due_at = now + max(retry_after(attempts), answer.wait)
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
    """Count failures in a row; let go of what waits at an endpoint, or disable it. One that asks to wait has not failed."""
    ended: dict[UUID, list[PostOutcome]] = defaultdict(list)
    for outcome in outcomes:
        ended[outcome.delivery.endpoint_id].append(outcome.answer)
    for key, answers in sorted(ended.items()):
        if endpoints[key].failures or not all(answer.is_delivered for answer in answers):
            _note_one(endpoints[key], answers, now, using)


def _note_one(endpoint: Endpoint, answers: Sequence[PostOutcome], now: datetime, using: str) -> None:
    if not endpoint.is_enabled:
        return
    was_paused, wait = endpoint.is_paused, max(answer.wait for answer in answers)
    if wait:
        endpoint.quiet_until = max(now + wait, endpoint.quiet_until or now)
    for answer in answers:
        if answer.wait:
            continue
        endpoint.failures = 0 if answer.is_delivered else endpoint.failures + 1
        endpoint.failing_since = None if answer.is_delivered else endpoint.failing_since or now
    endpoint.probe_at = now + probe_after(endpoint.failures) if endpoint.failures >= PAUSED_AFTER else None
    endpoint.save(using=using, update_fields=["failures", "failing_since", "probe_at", "quiet_until"])
    if any(answer.status == GONE for answer in answers):
        disable(endpoint, Disabled.GONE, now=now, using=using)
    elif is_given_up(endpoint.failing_since, endpoint.failures, now):
        disable(endpoint, Disabled.FAILING, now=now, using=using)
    elif was_paused and not endpoint.failures:
        waiting = Delivery.objects.using(using).waiting().filter(endpoint=endpoint, due_at__gt=now)
        waiting.update(due_at=now)
