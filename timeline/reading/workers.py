"""Workers: who has given a sign lately, how long ago, and how many tasks each is running."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Count, OuterRef, Subquery
from django.db.models.functions import Coalesce

from timeline.clocks import MachineTime
from timeline.conf import get_settings
from timeline.lifecycle import State
from timeline.models import ScheduledTask, Sign

MOST: Final = 100  # Workers that are listed.


@dataclass(frozen=True, slots=True)
class WorkerSign:
    """
    The last sign of a worker.

    Args:
        worker: Name of the worker, as on the rows of its tasks.
        seen_at: When it gave that sign, by the database's real clock.
        ago: How long ago that is.
        active: How many tasks it is running.
        is_missed: Whether a sign is overdue: it may be gone.
    """

    worker: str
    seen_at: datetime
    ago: timedelta
    active: int
    is_missed: bool


def workers_seen(*, using: str) -> list[WorkerSign]:
    """List the workers that have given a sign and were not found to be gone, the latest sign first. One statement."""
    running = ScheduledTask.objects.using(using).filter(state=State.ACTIVE, worker=OuterRef("worker")).order_by()
    counts = running.values("worker").annotate(count=Count("pk")).values("count")
    signs = Sign.objects.using(using).annotate(machine_time=MachineTime(), active=Coalesce(Subquery(counts), 0))
    return [_as_seen(sign) for sign in signs.order_by("-seen_at", "worker")[:MOST]]


def _as_seen(sign: Sign) -> WorkerSign:
    machine_time, active = sign.machine_time, sign.active  # type: ignore[attr-defined]
    ago = max(machine_time - sign.seen_at, timedelta())
    return WorkerSign(sign.worker, sign.seen_at, ago, active, ago > get_settings().missed_after)
