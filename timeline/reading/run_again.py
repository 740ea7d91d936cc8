"""What came of dead letters that were run again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from django.db.models import Case, Exists, OuterRef, QuerySet, Subquery, When
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from timeline.dialects import Among
from timeline.lifecycle import OPEN, State
from timeline.models import ScheduledTask

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet


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
