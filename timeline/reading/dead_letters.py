"""Dead letters: discarded tasks that nobody has redriven, in groups of the same failure; and those run again."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from django.db.models import Case, Count, Exists, Max, Min, OuterRef, QuerySet, Subquery, TextField, When
from django.db.models.functions import Cast, TruncHour
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from timeline.dialects import Among
from timeline.lifecycle import OPEN, ReasonCode, State
from timeline.likeness import cause_in
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """
    Groups with the same error, the largest first: one full mailbox makes several kinds of tasks fail. ``version`` is the
    definition of the task that failed first, as rows name it; empty: the task was scheduled by no definition.
    """

    key: str
    groups: Sequence[DeadLetters]
    version: str

    @property
    def count(self) -> int:
        return sum(each.count for each in self.groups)

    @property
    def first(self) -> DeadLetters:
        """The group with the task that failed first."""
        return min(self.groups, key=lambda each: each.first_at)

    @property
    def latest(self) -> DeadLetters:
        """The group with the task that failed last."""
        return max(self.groups, key=lambda each: each.last_at)

    def among(self, tasks: ScheduledTaskQuerySet) -> ScheduledTaskQuerySet:
        """Its dead letters among these tasks."""
        keys = sorted({each.task_key for each in self.groups})
        return tasks.dead_letters().with_handler(keys).filter(fingerprint__in=self.fingerprints)

    @property
    def fingerprints(self) -> list[str]:
        return sorted({each.group for each in self.groups})


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


def causes_of(tasks: ScheduledTaskQuerySet) -> list[Cause]:
    """Read all groups by cause, the last discarded first, in two statements; of ``MAX_GROUPS`` groups and versions at most."""
    found = list(_grouped(tasks.dead_letters(), "fingerprint", "task_key", "definition_hash")[:MAX_GROUPS])
    versions: dict[tuple[str, str], tuple[datetime, str]] = {}
    merged: dict[tuple[str, str], tuple[Any, ...]] = {}
    for group, task_key, version, count, first_at, last_at, sample in found:
        kind, counted = (group, task_key), (count, first_at, last_at, sample)
        versions[kind] = min(versions.get(kind, (first_at, version)), (first_at, version))
        if (known := merged.get(kind)) is not None:
            _group, _key, others, first, last, made = known
            counted = (count + others, min(first_at, first), max(last_at, last), max(sample, made))
        merged[kind] = (*kind, *counted)
    samples = tasks.filter(pk__in=[sample for *_group, sample in merged.values()]).select_related("run")
    together: dict[str, list[DeadLetters]] = {}
    for each in with_samples(merged.values(), samples):
        together.setdefault(_cause_key(each), []).append(each)
    causes = [
        Cause(
            key=key,
            groups=sorted(groups, key=lambda each: (-each.count, each.task_key)),
            version=min(versions[each.group, each.task_key] for each in groups)[1],
        )
        for key, groups in together.items()
    ]
    return sorted(causes, key=lambda cause: cause.latest.last_at, reverse=True)


def _cause_key(each: DeadLetters) -> str:
    """A short text that is equal for groups with the same error. Where errors say too little, each group is its own cause."""
    code = each.sample.reason_code
    is_lost = code == ReasonCode.WORKER_LOST  # The error is that of an attempt before.
    cause = code if is_lost else cause_in(each.sample.error)
    parts = [cause] if cause and each.group else [each.group, each.task_key]
    return hashlib.sha256("\x1f".join(parts).encode(errors="replace")).hexdigest()[:16]


def failures_by_hour(
    tasks: ScheduledTaskQuerySet, causes: Iterable[Cause], since: datetime
) -> dict[str, dict[datetime, int]]:
    """Count the dead letters of each cause by the hour (in UTC) in which they failed since then: key → hour → count."""
    keys = {(each.group, each.task_key): cause.key for cause in causes for each in cause.groups}
    dead = (
        tasks.dead_letters().filter(fingerprint__in={group for group, _key in keys}, finished_at__gte=since).order_by()
    )
    hours = dead.annotate(hour=TruncHour("finished_at", tzinfo=UTC)).values_list("fingerprint", "task_key", "hour")
    found: dict[str, dict[datetime, int]] = {}
    for group, task_key, hour, count in hours.annotate(count=Count("pk")) if keys else ():
        if (key := keys.get((group, task_key))) is not None:
            by_hour = found.setdefault(key, {})
            by_hour[hour] = by_hour.get(hour, 0) + count
    return found


def groups_of(tasks: ScheduledTaskQuerySet, group: str = "") -> QuerySet[Any, Any]:
    """Ask for groups, as ``with_samples`` takes them, the last discarded first."""
    return _grouped(tasks.dead_letters(group), "fingerprint", "task_key")


def _grouped(dead: ScheduledTaskQuerySet, *columns: str) -> QuerySet[Any, Any]:
    counted = dead.values_list(*columns).annotate(
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


LATELY: Final = timedelta(days=7)
_LOOKED_AT: Final = 10_000  # Of discarded tasks, those with the latest due times.
_MOST: Final = 1_000  # Tasks that were run again, of which the outcome is read.


class RunAgain(NamedTuple):
    """Tasks of one group that were run again lately, each once, by what came of it by now."""

    group: str
    task_key: str
    completed: int
    failed: int
    cancelled: int
    under_way: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.completed + self.failed + self.cancelled + self.under_way

    @property
    def words(self) -> str:
        """What came of them, in words."""
        said = [
            ngettext("%(count)d completed", "%(count)d completed", self.completed) % {"count": self.completed},
            ngettext("%(count)d failed again", "%(count)d failed again", self.failed) % {"count": self.failed},
            ngettext("%(count)d cancelled", "%(count)d cancelled", self.cancelled) % {"count": self.cancelled},
            ngettext("%(count)d under way", "%(count)d under way", self.under_way) % {"count": self.under_way},
        ]
        numbers = (self.completed, self.failed, self.cancelled, self.under_way)
        return ", ".join(text for text, number in zip(said, numbers, strict=True) if number)


def run_again(tasks: ScheduledTaskQuerySet, group: str = "", *, now: datetime) -> list[RunAgain]:
    """Read by group what was run again lately, the most first, or of one group. One statement, which is bounded."""
    last = tasks.failed_alike(group).order_by("-scheduled_at", "-pk").values("pk")[:_LOOKED_AT]
    lately = ScheduledTask.objects.using(tasks.db).filter(previous=OuterRef("pk"), created_at__gt=now - LATELY)
    failed = tasks.failed_alike(group).filter(Exists(lately), pk__in=last)
    found = _with_latest(failed, tasks.db).values_list("fingerprint", "task_key", "latest_id", "latest_state")[:_MOST]
    chains = {latest: (alike, key, state) for alike, key, latest, state in found}
    counts: dict[tuple[str, str], Counter[str]] = {}
    for alike, key, state in chains.values():
        counts.setdefault((alike, key), Counter())[state] += 1
    told = [
        RunAgain(
            alike,
            key,
            completed=number[State.COMPLETED],
            failed=number[State.DISCARDED],
            cancelled=number[State.CANCELLED],
            under_way=sum(number[state] for state in OPEN),
        )
        for (alike, key), number in counts.items()
    ]
    return sorted(told, key=lambda each: (-each.total, each.task_key, each.group))


def fixed_since(tasks: Iterable[ScheduledTask], *, using: str) -> dict[UUID, str]:
    """For those of these tasks that failed for good and were run again, what came of it by now, in words. One statement."""
    failed = [task.pk for task in tasks if task.state == State.DISCARDED]
    if not failed:
        return {}
    rows = ScheduledTask.objects.using(using).filter(Among(failed))
    found = _with_latest(rows, using).values_list("pk", "latest_id", "latest_state")
    return {pk: _in_words(state) for pk, latest, state in found if latest != pk}


def _in_words(state: str) -> str:
    if state == State.COMPLETED:
        return pgettext("timeline", "since fixed")
    if state == State.DISCARDED:
        return _("run again, failed again")
    if state == State.CANCELLED:
        return _("run again, cancelled")
    return _("run again, under way")


def _with_latest(tasks: QuerySet[ScheduledTask], using: str) -> QuerySet[Any, Any]:
    """Read with each task its latest revision: that of its run, or of what it is about, if it was scheduled by itself."""
    alike = {"task_key": OuterRef("task_key"), "occurrence": OuterRef("occurrence")}
    rows = ScheduledTask.objects.using(using).order_by("-revision")
    of_run = rows.filter(run=OuterRef("run_id"), **alike)
    about = {"entity_label": OuterRef("entity_label"), "entity_id": OuterRef("entity_id")}
    by_itself = rows.filter(run__isnull=True, **about, **alike)
    return tasks.annotate(
        **{
            f"latest_{name}": Case(
                When(run__isnull=False, then=Subquery(of_run.values(column)[:1])),
                default=Subquery(by_itself.values(column)[:1]),
            )
            for name, column in (("id", "pk"), ("state", "state"))
        }
    )
