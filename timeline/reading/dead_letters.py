"""Dead letters: discarded tasks that nobody has redriven, in groups of the same failure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.db.models import Count, Max, Min, TextField
from django.db.models.functions import Cast

from timeline.lifecycle import ReasonCode, State
from timeline.models import ScheduledTask
from timeline.reading.masks import masked

if TYPE_CHECKING:
    from django.db.models import QuerySet

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
    return [InRetry(*each) for each in kinds_in_retry(tasks)[:MAX_GROUPS]]


def kinds_in_retry(tasks: ScheduledTaskQuerySet) -> QuerySet[Any, Any]:
    """The query of ``in_retry``."""
    failed = tasks.filter(state=State.RETRYABLE, reason_code__in=FAILURES).order_by()
    counted = failed.values_list("task_key").annotate(waiting=Count("pk"), next_at=Min("scheduled_at"))
    return counted.order_by("-waiting", "task_key")


def dead_letters(tasks: ScheduledTaskQuerySet, group: str = "") -> list[DeadLetters]:
    """Read all groups, or one, the last discarded first, in two statements; ``MAX_GROUPS`` at most."""
    found = list(groups_of(tasks, group)[:MAX_GROUPS])
    return with_samples(found, tasks.filter(pk__in=[key for *_group, key in found]))


def groups_of(tasks: ScheduledTaskQuerySet, group: str = "") -> QuerySet[Any, Any]:
    """Ask for groups, as ``with_samples`` takes them, the last discarded first."""
    alike = tasks.dead_letters(group).values_list("fingerprint", "task_key")
    counted = alike.annotate(
        count=Count("pk"), first_at=Min("finished_at"), last_at=Max("finished_at"), sample=Max(Cast("pk", TextField()))
    )
    return counted.order_by("-last_at", "task_key", "fingerprint")


def with_samples(found: Iterable[Sequence[Any]], samples: Iterable[ScheduledTask]) -> list[DeadLetters]:
    """Put groups together with the samples that they name; those whose sample was pruned in between are left out."""
    known = {str(task.pk): task for task in samples}
    return [
        DeadLetters(group=group, task_key=key, count=count, first_at=first_at, last_at=last_at, sample=sample)
        for group, key, count, first_at, last_at, named in found
        if (sample := known.get(_dashed(named))) is not None
    ]


def _dashed(key: str) -> str:
    """A key as PostgreSQL writes it; SQLite keeps digits only."""
    return key if "-" in key else f"{key[:8]}-{key[8:12]}-{key[12:16]}-{key[16:20]}-{key[20:]}"
