"""Who did what: what people have decided about tasks and holds, the latest first. What workers and polls do is not in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from timeline.lifecycle import FINAL, ReasonCode, State
from timeline.models import Hold, LogEntry
from timeline.reading.reason_texts import retold

if TYPE_CHECKING:
    from timeline.models import ScheduledTask
    from timeline.models.decisions import HoldQuerySet

MOST: Final = 100  # Entries of the log on a page, and as many holds.
_LAST_ID: Final = 2**63 - 1
_TICK: Final = timedelta(microseconds=1)


class JournalPlace(NamedTuple):
    """A place in the journal: what comes behind it is earlier, or of this moment with a smaller id."""

    at: datetime
    id: int = _LAST_ID


class Deed(NamedTuple):
    """
    What somebody did once. ``task`` or ``hold`` is what it was done to; ``tasks``: further ones, to which the same was done
    right before, for the same reason.
    """

    at: datetime
    actor: str
    verb: str
    reason: str
    task: ScheduledTask | None = None
    hold: Hold | None = None
    tasks: Sequence[ScheduledTask] = ()

    @property
    def count(self) -> int:  # type: ignore[override]
        """Of how many tasks."""
        return 1 + len(self.tasks)


class Journal(NamedTuple):
    """A page of it; ``next`` is where the next one begins, None: there is none."""

    deeds: list[Deed]
    next: JournalPlace | None


def entries_of_people(*, actor: str, begin: datetime | None, end: datetime | None, using: str) -> QuerySet[LogEntry]:
    """
    Ask for entries with an actor, the latest first, in the order of their index. An event that ends a run is no decision about
    tasks: with customers who pay, a page would be full of these.
    """
    rows = LogEntry.objects.using(using).exclude(actor="").exclude(reason_code=ReasonCode.EXIT)
    entries = rows.order_by("-at", "-pk")
    entries = entries.filter(actor=actor) if actor else entries
    entries = entries.filter(at__gte=begin) if begin is not None else entries
    return entries.filter(at__lt=end) if end is not None else entries


def journal(
    holds: HoldQuerySet,
    visible: Callable[[set[UUID]], Iterable[ScheduledTask]],
    *,
    actor: str = "",
    begin: datetime | None = None,
    end: datetime | None = None,
    before: JournalPlace | None = None,
    using: str,
) -> Journal:
    """
    Read a page. Four statements, whatever there is; a page may have fewer lines than it has read entries.

    Args:
        holds: Those that who looks may see, with who decided.
        visible: Gives, of tasks with these ids, those of which who looks may read who decided.
        begin, end: Only what was done in this time.
    """
    entries = entries_of_people(actor=actor, begin=begin, end=end, using=using)
    if before is not None:
        entries = entries.filter(at__lte=before.at).exclude(at=before.at, pk__gte=before.id)
    read = list(entries[: MOST + 1])
    more, read = read[MOST:], read[:MOST]
    least = read[-1].at if more else begin
    begun = None if before is None else before.at
    deeds, cut = _of_holds(holds, actor, least, end, begun)
    place = JournalPlace(read[-1].at, read[-1].pk) if more else None
    if cut is not None and begun != cut + _TICK:  # Otherwise more were decided at one moment than any page has.
        deeds, read = [deed for deed in deeds if deed.at > cut], [entry for entry in read if entry.at > cut]
        place = JournalPlace(cut + _TICK, 0)
    known = {task.pk: task for task in visible({entry.task_id for entry in read})}
    deeds += [_of_entry(entry, known[entry.task_id]) for entry in read if entry.task_id in known]
    deeds.sort(key=lambda each: each.at, reverse=True)
    return Journal(_together(deeds), place)


def _of_holds(
    holds: HoldQuerySet, actor: str, least: datetime | None, end: datetime | None, before: datetime | None
) -> tuple[list[Deed], datetime | None]:
    """
    Holds made and released in the time of a page; those at the moment of its end belong to it. If there are more than a page
    has, also the moment of the first that is too many.
    """

    def within(who: str, when: str) -> list[Hold]:
        rows = holds.exclude(**{who: ""}).filter(**{f"{when}__isnull": False})
        rows = rows.filter(**{who: actor}) if actor else rows
        rows = rows.filter(**{f"{when}__gte": least}) if least is not None else rows
        for limit in filter(None, (end, before)):
            rows = rows.filter(**{f"{when}__lt": limit})
        return list(rows.order_by(f"-{when}", "-pk")[: MOST + 1])

    made = [
        Deed(hold.created_at, hold.actor, _("put on hold"), hold.why, hold=hold)
        for hold in within("actor", "created_at")
    ]
    released = [
        Deed(hold.lifted_at, hold.released_by, pgettext("timeline", "released"), hold.release_reason, hold=hold)
        for hold in within("released_by", "lifted_at")
        if hold.lifted_at is not None
    ]
    cut = max((some[MOST].at for some in (made, released) if len(some) > MOST), default=None)
    return made[:MOST] + released[:MOST], cut


def _of_entry(entry: LogEntry, task: ScheduledTask) -> Deed:
    return Deed(entry.at, entry.actor, verb_of(entry), retold(entry), task=task)


def verb_of(entry: LogEntry) -> str:
    """What somebody did, by the entry that has their name."""
    if "redriven" in entry.detail:
        return _("ran again")
    is_due = entry.from_state != entry.to_state == State.AVAILABLE
    if is_due and entry.reason_code == ReasonCode.OPERATOR:
        return _("had run now")
    if entry.detail.get("scheduled_at") or entry.reason_code == ReasonCode.MOVED:
        return pgettext("timeline", "moved")
    if entry.to_state == State.CANCELLED:
        return pgettext("timeline", "cancelled")
    if entry.to_state in FINAL:
        return pgettext("timeline", "ended")
    return pgettext("timeline", "decided")


def _together(deeds: Iterable[Deed]) -> list[Deed]:
    """Put together what somebody did to several tasks of a kind, one right after the other, for one reason."""
    told: list[Deed] = []
    for each in deeds:
        last = told[-1] if told else None
        if last is not None and each.task is not None and last.task is not None and _alike(last) == _alike(each):
            told[-1] = last._replace(tasks=[*last.tasks, each.task])
        else:
            told.append(each)
    return told


def _alike(deed: Deed) -> tuple[str, ...]:
    key = deed.task.task_key if deed.task is not None else ""
    return deed.actor, deed.verb, deed.reason, key
