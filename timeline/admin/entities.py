"""The page of an entity: its past, now and future on one axis, and in a table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta, tzinfo
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from django.utils.translation import pgettext

from timeline.admin.drawing import drawing
from timeline.admin.holding import holds_over, told_holds
from timeline.admin.looking import sees
from timeline.admin.naming import Called, called
from timeline.admin.readers import Reader
from timeline.admin.standing import standing_of
from timeline.dialects import dialect_of
from timeline.dispatch.noticing_silence import silent
from timeline.lifecycle import FINAL, OPEN, State
from timeline.models import EntityRef, Event, Hold, RunEntry, ScheduledTask, Scope, TimelineRun
from timeline.reading.explaining import why
from timeline.reading.machine_pictures import run_picture
from timeline.reading.machines import entries_to_tell, machine_lines
from timeline.reading.recalling import keep_said, with_said
from timeline.reading.schedules import schedule_in_words
from timeline.registry import registry
from timeline.store.gathering import Words, gather_now
from timeline.timing import LATEST

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from timeline.admin.looking import About
    from timeline.models.task import ScheduledTaskQuerySet
    from timeline.reading.foreseeing import Outlook

MAX_SHOWN = 100  # So many are shown on each side of now, the nearest.
FORESEEN = "foreseen"
EVENT = "event"
MAX_EVENTS = 50
MAX_RUNS = 20
MAX_LANES = 24  # Of the picture; the tables have all.
SPANS: Final = {"day": timedelta(days=1), "week": timedelta(days=7), "month": timedelta(days=30)}  # Around now.


class Item(NamedTuple):
    """
    One thing on the axis.

    Args:
        key: Of the task.
        at: When it ended, is due or is expected; None: nobody can say.
        state: A state, or ``foreseen``.
        label: The state in words.
        why: Why it is so; may be empty.
        task: None: it has no row yet, or is an event.
        lane: Where it stands in the picture; empty: with others of its key.
        group: Whose it is: 0, of the entity itself; else of the how-manieth that belongs to it.
        stands: Of one that is ahead: whether it would run as things stand, in words; empty where it has no guards.
    """

    key: str
    at: datetime | None
    state: str
    label: str
    why: str
    task: ScheduledTask | None = None
    lane: str = ""
    group: int = 0
    stands: str = ""

    @property
    def full_key(self) -> str:
        """Its key, and which of many it is."""
        return self.task.full_key if self.task else self.key

    @property
    def called(self) -> Called:
        """How people call it; events have no titles."""
        return Called("", self.key, "", self.key) if self.state == EVENT else called(self.full_key)


class Read(NamedTuple):
    """
    What is read of an entity's page in one statement, once it is known that who looks may.

    Args:
        now: Story time.
        tasks: The nearest to now on each side.
        runs: Those that are open, and the latest.
        events: The latest that mean something to timelines of which they see the rows.
        entries: Of the latest runs of machines.
        holds: What is on hold.
        seen_holds: Ids of those holds of which they may read who decided.
        task_keys: Of all the tasks there are; none, unless they are asked for.
        nobody_polls: Whether this database is not polled.
    """

    now: datetime
    tasks: list[ScheduledTask]
    runs: list[TimelineRun]
    events: list[Event]
    entries: list[RunEntry]
    holds: list[Hold]
    seen_holds: set[UUID]
    task_keys: list[str]
    nobody_polls: bool


def read_entity(about: About, visible: ScheduledTaskQuerySet, reader: Reader, *, keys: bool) -> Read:
    """
    Read what the page of an entity shows of its own.

    Args:
        about: The entity.
        visible: The tasks that the user may see.
        reader: Who looks.
        keys: Whether the keys of all tasks are asked for.
    """
    ref, using = about.ref, visible.db
    seen = _seen(about, reader, using)
    runs, latest = _runs(ref, seen, using=using)
    known = {event for definition in registry if definition.name in seen for event in definition.events}
    events = Event.objects.using(using).for_entity(ref) if known and ref.label else Event.objects.none()
    events = events.filter(name__in=known).order_by("-recorded_at", "-pk").only("name", "occurred_at", "recorded_at")
    holds = holds_over(about, using=using)
    asked: list[QuerySet[Any] | Words] = [
        nearest(visible.for_entity(ref)),
        runs,
        events[:MAX_EVENTS],
        entries_to_tell(latest, using=using) if registry.machines() else RunEntry.objects.none(),
        holds,
        reader.policy.visible_holds(holds, reader.user).values_list("pk"),
        silent(using=using).values_list("pk"),
        *([Words(dialect_of(using).sql("task_keys_there"))] if keys else []),
    ]
    now, [tasks, found, told, entries, there, people, unpolled, *rest] = gather_now(asked, using=using)
    keep_said(tasks)
    told.sort(key=lambda event: (event.recorded_at, event.pk), reverse=True)
    return Read(now, tasks, found, told, entries, there, {key for [key] in people}, [*chain(*rest)], bool(unpolled))


def _seen(about: About, reader: Reader, using: str) -> set[str]:
    """Names of timelines whose rows about the entity who looks may see."""
    return {known.name for known in registry if sees(reader.policy, reader.user, known.name, about.ref, using)}


def timeline_of(about: About, read: Read, reader: Reader, outlooks: Sequence[Outlook], *, using: str) -> dict[str, Any]:
    """
    Put together what the page of an entity shows.

    Args:
        about: The entity.
        read: What was read of it.
        reader: Who looks.
        outlooks: What is foreseen of its open runs.
        using: Database alias.
    """
    now, latest = read.now, in_order_of_start(read.runs)[:MAX_RUNS]
    tasks = sorted(read.tasks, key=lambda task: (task.scheduled_at, task.pk))
    items, is_cut = as_items(
        [task for task in tasks if not task.is_open][::-1], [task for task in tasks if task.is_open], reader
    )
    items += [as_foreseen(outlook) for outlook in outlooks]
    label, lane = pgettext("timeline", "event"), pgettext("timeline", "Events")
    items += [Item(event.name, event.occurred_at, EVENT, label, "", lane=lane) for event in read.events]
    stands = standing_of([item.task for item in items if item.task and item.state in OPEN], about.there, using=using)
    items = [item._replace(stands=stands.get(item.task.pk, "")) if item.task else item for item in items]
    behind = {*FINAL, EVENT}
    later = [item for item in items if item.at is None or item.state not in behind]
    lines = machine_lines(latest, people=reader.reads_people_of, read=read.entries, using=using)
    return {
        "ahead": in_order(later, now),
        "past": in_order((item for item in items if item.state in behind), now)[::-1],
        "items": items,
        "schedules": _schedules(about.ref, _seen(about, reader, using), now),
        "runs": [(run, reader.end_of(run)) for run in latest],
        "machines": [(line, run_picture(line)) for line in lines],
        "holds": told_holds(read.holds, read.seen_holds),
        "nobody_polls": read.nobody_polls,
        "is_cut": is_cut,
        "most": MAX_SHOWN,
        "signs": [
            *((state.value, state.label) for state in State),
            (FORESEEN, pgettext("timeline", "foreseen")),
            (EVENT, pgettext("timeline", "event")),
        ],
    }


def picture(items: Sequence[Item], *, span: str, holds: Iterable[Hold], now: datetime, zone: tzinfo) -> dict[str, Any]:
    """
    Draw items, and say how else they may be drawn.

    Args:
        items: Of the entity, and of what belongs to it.
        span: How much time the picture is of: one of ``SPANS``; else all of it.
        holds: Those that are open over the entity or a part of it.
        now: Story time.
        zone: The site's.
    """
    until = _held_until(holds)
    drawn = drawing(items, span=SPANS.get(span), most=MAX_LANES, held_until=until, now=now, zone=zone)
    spans = [
        ("day", pgettext("timeline", "Day")),
        ("week", pgettext("timeline", "Week")),
        ("month", pgettext("timeline", "Month")),
        ("", pgettext("timeline", "All of it")),
    ]
    return {"drawing": drawn, "span": span if span in SPANS else "", "spans": spans}


def _held_until(holds: Iterable[Hold]) -> datetime | None:
    """Until when all that is about the entity is on hold; a hold of one of its tasks or timelines is over a part only."""
    ends = [hold.until or LATEST for hold in holds if hold.scope in (Scope.ENTITY, Scope.EVERYTHING)]
    return max(ends, default=None)


def nearest(tasks: ScheduledTaskQuerySet) -> ScheduledTaskQuerySet:
    """Ask for what an entity has nearest to now on each side, one more than is shown, with what their logs say."""
    rows, most = tasks.model._default_manager.using(tasks.db), MAX_SHOWN + 1
    past = tasks.final().order_by("-scheduled_at", "-pk").values("pk")[:most]
    ahead = tasks.open().in_order().values("pk")[:most]
    return with_said(rows.filter(pk__in=past)).union(with_said(rows.filter(pk__in=ahead)), all=True)


def as_items(past: list[ScheduledTask], ahead: list[ScheduledTask], reader: Reader) -> tuple[list[Item], bool]:
    """Show what was read: the latest of the past, and what is ahead, ``MAX_SHOWN`` of each; and whether there is more."""
    shown = [*past[:MAX_SHOWN][::-1], *ahead[:MAX_SHOWN]]
    return [_row(task, reader) for task in shown], len(past) > MAX_SHOWN or len(ahead) > MAX_SHOWN


def _runs(ref: EntityRef, seen: Collection[str], *, using: str) -> tuple[QuerySet[TimelineRun], QuerySet[TimelineRun]]:
    """Ask for those of an entity that are open, with the latest; each part by an index of its own, as the system may have very
    many. And for the latest by themselves."""
    runs = TimelineRun.objects.using(using)
    of_entity = runs.for_entity(ref).filter(timeline__in=seen)
    latest = of_entity.order_by("-started_at", "pk")[:MAX_RUNS]
    ended = runs.filter(pk__in=latest.values("pk"), ended_at__isnull=False)
    return of_entity.open().union(ended, all=True), latest


def in_order_of_start(runs: Iterable[TimelineRun]) -> list[TimelineRun]:
    """Runs, the latest first."""
    found = sorted(runs, key=lambda run: run.pk)
    return sorted(found, key=lambda run: run.started_at, reverse=True)


def _schedules(ref: EntityRef, seen: Collection[str], now: datetime) -> list[tuple[str, str]]:
    """Timelines that start by the clock, with when; they are about the system."""
    known = [] if ref.label else [known for known in registry if known.name in seen]
    told = [(known.name, schedule_in_words(known.recurring, now=now)) for known in known if known.recurring]
    return sorted(told)


def as_foreseen(outlook: Outlook) -> Item:
    """Show what has no row yet."""
    return Item(outlook.task_key, outlook.expected_at, FORESEEN, pgettext("timeline", "foreseen"), outlook.why)


def _row(task: ScheduledTask, reader: Reader) -> Item:
    at, label = task.finished_at or task.scheduled_at, str(State(task.state).label)
    return Item(task.task_key, at, task.state, label, why(reader.shown(task)), task)


def in_order(items: Iterable[Item], now: datetime) -> list[Item]:
    """By time; what is foreseen at the same moment as its predecessor comes after it, and some day is last."""
    return sorted(items, key=lambda item: (item.at is None, item.at or now, item.state == FORESEEN))
