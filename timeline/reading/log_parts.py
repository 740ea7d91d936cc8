"""The log of a task in parts: an attempt writes several entries, and a task that is tried again for weeks has thousands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.lifecycle import State
from timeline.models import LogEntry
from timeline.store.multi_query import gather

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from timeline.models import ScheduledTask

MOST: Final = 200  # Entries of a part.


class LogPart(NamedTuple):
    """
    Entries of a log, in order.

    Args:
        left_out: So many are before the first of these.
        first_due: When the task was due before its first attempt, if it was tried again or rested; None: it was not.
        is_latest: Whether nothing comes after these.
    """

    entries: Sequence[LogEntry]
    left_out: int
    first_due: datetime | None
    is_latest: bool = True


def asked_of_log(task: ScheduledTask, *, before: int | None = None, using: str) -> list[QuerySet[Any]]:
    """Ask for the latest entries, or those before one (``seq``), and for the end of the first attempt if others followed."""
    log = LogEntry.objects.using(using).filter(task=task)
    part = log if before is None else log.filter(seq__lt=before)
    ends = log.filter(from_state=State.ACTIVE, detail__has_key="scheduled_at_before")
    return [part.order_by("-seq")[: MOST + 1], ends.order_by("seq")[:1]]


def log_part(found: Iterable[LogEntry], ends: Sequence[LogEntry], *, is_latest: bool = True) -> LogPart:
    """Take what ``asked_of_log`` has found."""
    entries = sorted(found, key=lambda entry: entry.seq)
    first = next((before for end in ends if (before := end.detail["scheduled_at_before"])), None)
    shown = entries[-MOST:]
    left_out = shown[0].seq - 1 if len(entries) > MOST else 0
    return LogPart(shown, left_out, datetime.fromisoformat(first) if first else None, is_latest)


def read_log(task: ScheduledTask, *, before: int | None = None, using: str) -> LogPart:
    """Read a part, in one statement."""
    found, ends = gather(asked_of_log(task, before=before, using=using), using=using)
    return log_part(found, ends, is_latest=before is None)
