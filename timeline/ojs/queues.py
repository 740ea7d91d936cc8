"""Queues: what there is in them, and whether they are paused."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Case, CharField, Count, F, Min, Q, Value, When

from timeline.lifecycle import FINAL, OPEN, ReasonCode, State
from timeline.ojs.models import Queue
from timeline.ojs.values import told
from timeline.ojs.wire import EXPIRED, NEVER, PENDING

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet

HOUR: Final = timedelta(hours=1)


def set_paused(name: str, at: datetime | None, *, using: str) -> None:
    """Pause a queue from this moment on, or resume it (None). A queue that is paused already keeps its moment."""
    queue, _made = Queue.objects.using(using).get_or_create(pk=name)
    if (queue.paused_at is None) != (at is None):
        Queue.objects.using(using).filter(pk=name).update(paused_at=at)


def paused_at(name: str, *, using: str) -> datetime | None:
    """Since when a queue is paused; None: it is not."""
    return Queue.objects.using(using).filter(pk=name).values_list("paused_at", flat=True).first()


def all_queues(rows: ScheduledTaskQuerySet, *, using: str) -> list[dict[str, Any]]:
    """All queues that have jobs or are paused, by name. Two statements."""
    first = dict(rows.order_by().values_list("queue").annotate(Min("created_at")))
    paused = dict(Queue.objects.using(using).filter(paused_at__isnull=False).values_list("name", "paused_at"))
    return [
        {
            "name": name,
            "status": "paused" if name in paused else "active",
            **({"created_at": told(first[name])} if name in first else {}),
        }
        for name in sorted({*first, *paused})
    ]


def stats(name: str, rows: ScheduledTaskQuerySet, now: datetime) -> dict[str, int]:
    """How many jobs of a queue are in each state, as clients see it. One statement for what is open, one for what has ended."""
    found = dict.fromkeys([state.value for state in State if state != State.PENDING] + [PENDING], 0)
    mine = rows.filter(queue=name)
    is_due, is_over = Q(scheduled_at__lte=now), Q(expires_at__lte=now)
    shown = Case(
        When(state=State.ACTIVE, then=Value(State.ACTIVE.value)),
        When(is_over, then=Value(EXPIRED)),
        When(state=State.SCHEDULED, scheduled_at__gte=NEVER, then=Value(PENDING)),
        When(is_due | Q(state__in=[State.PENDING, State.AVAILABLE]), then=Value(State.AVAILABLE.value)),
        default=F("state"),
        output_field=CharField(),
    )
    opened = mine.filter(state__in=sorted(OPEN)).order_by().annotate(shown=shown).values_list("shown")
    for state, count in opened.annotate(Count("pk")):
        found[state] += count
    ended = mine.filter(state__in=sorted(FINAL)).order_by().values_list("state", "reason_code").annotate(Count("pk"))
    for state, code, count in ended:
        expired = state == State.CANCELLED and code == ReasonCode.EXPIRED
        found[EXPIRED if expired else state] += count
    return found


def lately(name: str, rows: ScheduledTaskQuerySet, now: datetime) -> dict[str, int]:
    """How many jobs of a queue have completed, and were given up, in the last hour. One statement."""
    ended = rows.filter(queue=name, finished_at__gt=now - HOUR, state__in=[State.COMPLETED, State.DISCARDED])
    counts = dict(ended.order_by().values_list("state").annotate(Count("pk")))
    return {
        "completed_last_hour": counts.get(State.COMPLETED, 0),
        "failed_last_hour": counts.get(State.DISCARDED, 0),
    }
