"""Pages by keys: each begins after the last row of the one before, so that nothing is counted, skipped or shown twice."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, NamedTuple

from django.db.models import Q

from timeline.admin.asking import Key, Question
from timeline.store.earliest import First, first_page

if TYPE_CHECKING:
    from timeline.models import ScheduledTask
    from timeline.models.task import ScheduledTaskQuerySet

SIZE = 50


class Page(NamedTuple):
    """Rows, and where the pages around them begin; None: there are none."""

    tasks: list[ScheduledTask]
    next: Key | None
    previous: Key | None


def page_of(
    tasks: ScheduledTaskQuerySet,
    question: Question,
    *,
    now: datetime,
    zone: tzinfo,
    kinds: Callable[[], Collection[str]] | None = None,
) -> Page:
    """Read one page of what is asked, in one query; ``kinds`` gives the kinds of tasks there are, if that needs them."""
    backward = question.before is not None
    latest = question.latest_first != backward
    rows = question.narrow(tasks, now=now, zone=zone)
    if (key := question.before or question.after) is not None:
        rows = rows.filter(_beyond(key, latest=latest))
    found = first_page(rows, First(question.states, latest), SIZE + 1, kinds=kinds)
    more, shown = len(found) > SIZE, found[:SIZE]
    if backward:
        shown.reverse()
    goes_on, went_before = (key is not None, more) if backward else (more, key is not None)
    return Page(
        shown,
        _key_of(shown[-1]) if shown and goes_on else None,
        _key_of(shown[0]) if shown and went_before else None,
    )


def _beyond(key: Key, *, latest: bool) -> Q:
    """Condition on tasks that come after the key. The first half lets an index begin there."""
    side = "lt" if latest else "gt"
    tie = Q(**{f"scheduled_at__{side}": key.at}) | Q(**{f"pk__{side}": key.id})
    return Q(**{f"scheduled_at__{side}e": key.at}) & tie


def _key_of(task: ScheduledTask) -> Key:
    return Key(task.scheduled_at, task.pk)
