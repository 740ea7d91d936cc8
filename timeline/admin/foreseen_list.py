"""What the list of upcoming events has no rows for: what follows the tasks that it shows, and the next runs by the clock."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.admin.list_query import OPEN_ONES
from timeline.admin.references import Called, Named, called, why_in_words
from timeline.admin.subject import Reader, sees
from timeline.models import TimelineRun
from timeline.reading.inventory import times_by_the_clock
from timeline.reading.outlook import foreseen_of
from timeline.told_times import from_now

if TYPE_CHECKING:
    from timeline.admin.list_query import Question
    from timeline.admin.task_list import ListRow

SHOWN: Final = 20


class Follower(NamedTuple):
    """What gets a row if what it follows completes. ``at`` and ``span`` are empty where nobody can say when."""

    called: Called
    entity: Named
    at: datetime | None
    span: str
    why: str


class ByTheClock(NamedTuple):
    """Timelines that a clock starts: how many, which is next, and when."""

    number: int
    name: str
    at: datetime
    span: str


def followers_of(
    rows: Sequence[ListRow], question: Question, reader: Reader, *, now: datetime, using: str
) -> dict[str, Any]:
    """
    List what follows the tasks shown, the soonest first, if the list is of one timeline, or about one entity; of the whole list
    there may be very many. Nothing: it is not. At most three statements, and one more for each kind of entity.
    """
    is_of_one = bool(question.timeline or question.q)
    plain = question.state == OPEN_ONES and not (question.task or question.reason or question.payload or question.day)
    if not (is_of_one and plain):
        return {"followers": [], "is_of_one": is_of_one}
    names = {row.task.entity_ref: row.entity for row in rows}
    runs = TimelineRun.objects.using(using).open().filter(pk__in={row.task.run_id for row in rows if row.task.run_id})
    policy, user = reader.policy, reader.user
    policy.look_up(user, names, using=using)
    seen = [run for run in runs if sees(policy, user, run.timeline, run.entity_ref, using)]
    found = [
        Follower(
            called(outlook.task_key),
            names[run.entity_ref],
            outlook.expected_at,
            from_now(outlook.expected_at, now) if outlook.expected_at else "",
            why_in_words(outlook.task_key, outlook.why),
        )
        for run, outlook in foreseen_of(seen, now=now, using=using)
        if run.entity_ref in names
    ]
    return {"followers": found[:SHOWN], "more_followers": max(len(found) - SHOWN, 0), "is_of_one": True}


def by_the_clock(question: Question, *, now: datetime) -> ByTheClock | None:
    """The timelines that a clock starts, of those that are asked for; None: there are none. Nothing is read."""
    times = [(at, name) for at, name in times_by_the_clock(now=now) if question.timeline in ("", name)]
    if not times or question.state != OPEN_ONES:
        return None
    at, name = min(times)
    return ByTheClock(len(times), name, at, from_now(at, now))
