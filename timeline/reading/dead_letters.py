"""Dead letters: discarded tasks that nobody has redriven, in groups of the same failure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.db.models import Count, Max, Min, TextField
from django.db.models.functions import Cast

from timeline.lifecycle import ReasonCode, State
from timeline.models import ScheduledTask
from timeline.reading.masks import masked

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet

MAX_GROUPS: Final = 200
FAILURES: Final = (ReasonCode.ERROR.value, ReasonCode.TIMEOUT.value, ReasonCode.WORKER_LOST.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetters:
    """Tasks of one key that failed alike: ``group`` is the fingerprint, ``sample`` was made last; times of discarding."""

    group: str
    task_key: str
    count: int
    first_at: datetime
    last_at: datetime
    sample: ScheduledTask

    @property
    def message(self) -> str:
        """The last error of the sample, or the reason if there was none; empty if it may not be read."""
        return self.sample.error or self.sample.reason

    def as_data(self, *, payload: bool = True) -> dict[str, Any]:
        shown = self if payload else self.masked()
        data = {name: getattr(self, name) for name in ("group", "task_key", "count", "first_at", "last_at")}
        return data | {"sample": str(self.sample.pk), "message": shown.message}

    def masked(self) -> DeadLetters:
        """The same group for readers who may not read errors."""
        return replace(self, sample=masked(self.sample))


class InRetry(NamedTuple):
    """Tasks of a kind that failed and will be tried again: how many, and when the next is due."""

    task_key: str
    waiting: int
    next_at: datetime


def in_retry(tasks: ScheduledTaskQuerySet) -> list[InRetry]:
    """Count, by kind, failed tasks that will be tried again, the most first. One statement; ``MAX_GROUPS`` at most."""
    failed = tasks.filter(state=State.RETRYABLE, reason_code__in=FAILURES).order_by()
    counted = failed.values_list("task_key").annotate(waiting=Count("pk"), next_at=Min("scheduled_at"))
    return [InRetry(*each) for each in counted.order_by("-waiting", "task_key")[:MAX_GROUPS]]


def dead_letters(tasks: ScheduledTaskQuerySet, group: str = "") -> list[DeadLetters]:
    """Read all groups, or one, the last discarded first, in two statements; ``MAX_GROUPS`` at most."""
    alike = tasks.dead_letters(group).values("fingerprint", "task_key")
    found = list(
        alike.annotate(
            count=Count("pk"),
            first_at=Min("finished_at"),
            last_at=Max("finished_at"),
            sample=Max(Cast("pk", TextField())),
        ).order_by("-last_at", "task_key", "fingerprint")[:MAX_GROUPS]
    )
    samples = {str(task.pk): task for task in tasks.filter(pk__in=[each["sample"] for each in found])}
    return [
        DeadLetters(
            group=each["fingerprint"],
            task_key=each["task_key"],
            count=each["count"],
            first_at=each["first_at"],
            last_at=each["last_at"],
            sample=sample,
        )
        for each in found
        if (sample := samples.get(_dashed(each["sample"]))) is not None  # Otherwise it was pruned in between.
    ]


def _dashed(key: str) -> str:
    """A key as PostgreSQL writes it; SQLite keeps digits only."""
    return key if "-" in key else f"{key[:8]}-{key[8:12]}-{key[12:16]}-{key[16:20]}-{key[20:]}"
