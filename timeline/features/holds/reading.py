"""Holds, as people read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from django.utils.timesince import timesince
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from timeline.features.holds.store import holds_over, over_these, tasks_under
from timeline.lifecycle import OPEN, WAITING, State
from timeline.models import EntityRef, Hold, Then
from timeline.reading.attention import MAX_COUNTED, Ask, counts_of, told_count
from timeline.store.bounded_counts import Counted
from timeline.timing import told_time

if TYPE_CHECKING:
    from timeline.models import ScheduledTask
    from timeline.models.task import ScheduledTaskQuerySet

FIRST: Final = 20  # Tasks of which it is said whom they are about.
_SOON: Final = timedelta(hours=24)


class HeldTask(NamedTuple):
    """
    A task that a hold keeps: ``until`` when, and when it runs then, as things stand. None: until somebody releases it.
    ``is_called_off``: what is due by the end of the hold is cancelled.
    """

    until: datetime | None
    comes_at: datetime | None
    is_called_off: bool = False


def held_in_words(holds: Iterable[Hold]) -> str:
    """Say in a few words until when holds keep a task; empty: there are none."""
    ends = [hold.until for hold in holds]
    if not ends:
        return ""
    known = [at for at in ends if at is not None]
    if len(known) < len(ends):
        return _("held until somebody releases it")
    return _("held until %(at)s") % {"at": told_time(max(known))}


def held_until(tasks: Sequence[ScheduledTask], found: Sequence[Hold] | None, *, using: str) -> dict[UUID, str]:
    """
    Say in a few words until when tasks are on hold; a hold that ends before a task is due does not keep it. ``found``: what
    ``some_open`` has.
    """
    over = holds_over(tasks, using=using) if found is None else over_these(tasks, found, using=using)
    keeping = {task.pk: _keeping(task, over.get(task.pk, ())) for task in tasks}
    return {task_id: held_in_words(holds) for task_id, holds in keeping.items() if holds}


def waits_of(tasks: Sequence[ScheduledTask], *, using: str) -> dict[UUID, HeldTask]:
    """Find what is on hold of some tasks, and when it is due for all that: for whom a task is about. One statement."""
    over = holds_over(tasks, using=using)
    return {task.pk: _held_task(task, holds) for task in tasks if (holds := _keeping(task, over.get(task.pk, ())))}


def _keeping(task: ScheduledTask, holds: Iterable[Hold]) -> list[Hold]:
    """Those of the holds over a task that end after it is due."""
    return [hold for hold in holds if hold.until is None or hold.until > task.scheduled_at]


def _held_task(task: ScheduledTask, holds: Sequence[Hold]) -> HeldTask:
    ends = [hold.until for hold in holds if hold.until is not None]
    if len(ends) < len(holds):
        return HeldTask(None, None, any(hold.then == Then.EXPIRE for hold in holds))
    until = max(ends)
    if any(hold.then == Then.EXPIRE for hold in holds):
        return HeldTask(until, None, is_called_off=True)
    moved = [
        hold.until - max(hold.created_at, task.created_at) for hold in holds if hold.until and hold.then == Then.SHIFT
    ]
    return HeldTask(until, max(until, task.scheduled_at + max(moved, default=timedelta(0))))


def told_of(task: ScheduledTask, *, people: bool, using: str) -> Iterator[str]:
    """Say of each hold over a task what it is."""
    return (told_hold(hold, people=people) for hold in holds_over([task], using=using).get(task.pk, ()))


def told_hold(hold: Hold, *, people: bool = True) -> str:
    """Say what is on hold, from when to when, by whom and why, and what then. ``people``: tell who decided, and their texts."""
    told = {
        "what": hold.what,
        "since": told_time(hold.created_at),
        "until": told_time(hold.until) if hold.until else "",
        "actor": hold.actor,
    }
    if hold.lifted_at is not None:
        said = _("On hold since %(since)s (%(what)s); it is being released") % told
    elif hold.until is not None:
        said = _("On hold from %(since)s to %(until)s (%(what)s)") % told
    else:
        said = _("On hold since %(since)s, until somebody releases it (%(what)s)") % told
    if people and hold.actor:
        said = _("%(said)s, by %(actor)s") % {"said": said, "actor": hold.actor}
    why = ": " + hold.why.rstrip(".") if people or hold.is_by_brake else ""
    if hold.is_by_brake and hold.lifted_at is None:
        remedy = _("See what is due of it: cancel what must not run, then release it. All that is due by then runs.")
        return f"{said}{why}. {remedy}"
    return _("%(said)s. Then %(what)s.") % {"said": f"{said}{why}", "what": Then(hold.then).label}


def would_hold(visible: ScheduledTaskQuerySet, holds: Sequence[Hold], *, now: datetime) -> str:
    """Say how many tasks holds that are not made would hold, of those that who looks may see. One statement."""
    tasks = tasks_under(holds, visible)
    # Of each state apart, in the order of the index that ends the count as soon as there are enough.
    parts = [tasks.filter(state=state).in_order() for state in sorted(OPEN - {State.ACTIVE})]
    soon = [part.filter(scheduled_at__lt=now + _SOON) for part in parts]
    asks = [*(Ask("all", part) for part in parts), *(Ask("soon", part) for part in soon)]
    counts = counts_of(asks, using=visible.db)
    several, few = (counts.get(name, Counted()).count for name in ("all", "soon"))
    said = ngettext("It holds %(count)s task", "It holds %(count)s tasks", several) % {"count": told_count(several)}
    if not several:
        return _("It holds no task that you can see now.")
    soon_due = ngettext(
        "of which %(count)s is due now or in the next 24 hours",
        "of which %(count)s are due now or in the next 24 hours",
        few,
    )
    return f"{said}, {soon_due % {'count': told_count(few)}}." if few else f"{said}."


def would_release(
    visible: ScheduledTaskQuerySet, hold: Hold, others: Sequence[Hold], *, now: datetime
) -> tuple[list[str], list[EntityRef]]:
    """
    Say what becomes of tasks if a hold is released now, of those that who looks may see; and whom the first that are due are
    about, ``FIRST`` at most. ``others``: holds that stay in force. Two statements; each count ends at a bound.
    """
    under = tasks_under([hold], visible)
    due, ahead = under.due(now).in_order(), under.ahead(now)
    rows = visible.filter(pk__in=due.values("pk")[:MAX_COUNTED])
    parts = [Ask("due", part.in_order()) for part in under.late(now)]
    parts += [Ask("ahead", ahead.filter(state=state).in_order()) for state in sorted(WAITING)]
    parts += [Ask("late", rows.filter(expires_at__lte=now).in_order())]
    parts += [Ask("kept", tasks_under(others, rows).in_order())] if others else []
    found = counts_of(parts, using=visible.db)
    counts = {name: found.get(name, Counted()).count for name in ("due", "ahead", "late", "kept")}
    first = list(due.values_list("entity_label", "entity_id")[: FIRST + 1]) if counts["due"] else []
    return list(_told_release(hold, counts, now)), [EntityRef(*ref) for ref in first]


def _told_release(hold: Hold, counts: Mapping[str, int], now: datetime) -> Iterator[str]:
    due, ahead = counts["due"], counts["ahead"]
    if not due + ahead:
        yield _("Nothing that you can see is under it now.")
    elif hold.then == Then.SHIFT:
        several = due + ahead
        said = ngettext(
            "%(count)s task moves on by the time for which it was held, up to %(span)s: those that are due by then run.",
            "%(count)s tasks move on by the time for which they were held, up to %(span)s: those that are due by then run.",
            several,
        )
        yield said % {"count": told_count(several), "span": timesince(hold.created_at, min(hold.until or now, now))}
        return
    elif hold.then == Then.EXPIRE and due:
        said = ngettext("%(count)s task is due, and is cancelled.", "%(count)s tasks are due, and are cancelled.", due)
        yield said % {"count": told_count(due)}
    elif due:
        said = ngettext("%(count)s task is due, and runs at once.", "%(count)s tasks are due, and run at once.", due)
        yield said % {"count": told_count(due)}
    if due and hold.then == Then.RUN:
        yield from _told_exceptions(counts)
    if ahead:
        said = ngettext("%(count)s is ahead, and keeps its time.", "%(count)s are ahead, and keep their times.", ahead)
        yield said % {"count": told_count(ahead)}


def _told_exceptions(counts: Mapping[str, int]) -> Iterator[str]:
    if kept := counts["kept"]:
        said = ngettext(
            "Of these, %(count)s stays on hold: something else holds it, too.",
            "Of these, %(count)s stay on hold: something else holds them, too.",
            kept,
        )
        yield said % {"count": told_count(kept)}
    if late := counts["late"]:
        said = ngettext(
            "Of these, %(count)s is dropped, because it is too late for it.",
            "Of these, %(count)s are dropped, because it is too late for them.",
            late,
        )
        yield said % {"count": told_count(late)}
