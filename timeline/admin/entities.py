"""The page of an entity: its past, now and future on one axis, and in a table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.utils.translation import pgettext

from timeline.admin.drawing import drawing
from timeline.admin.looking import sees
from timeline.admin.naming import Called, called
from timeline.admin.readers import Reader
from timeline.admin.standing import standing_of
from timeline.lifecycle import FINAL, OPEN, State
from timeline.models import EntityRef, Event, TimelineRun
from timeline.reading.explaining import why
from timeline.reading.foreseeing import foreseen_of
from timeline.reading.machine_pictures import run_picture
from timeline.reading.machines import machine_lines
from timeline.reading.recalling import recall
from timeline.reading.schedules import schedule_in_words
from timeline.registry import registry
from timeline.store.earliest import First, first_of_kinds

if TYPE_CHECKING:
    from timeline.admin.looking import About
    from timeline.models import ScheduledTask
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


def timeline_of(about: About, visible: ScheduledTaskQuerySet, reader: Reader, *, now: datetime) -> dict[str, Any]:
    """
    Put together what the page of an entity shows.

    Args:
        about: The entity.
        visible: The tasks that the user may see.
        reader: Who looks.
        now: Story time.
    """
    ref, using = about.ref, visible.db
    items, is_cut = nearest(visible.for_entity(ref), reader)
    seen = {known.name for known in registry if sees(reader.policy, reader.user, known.name, ref, using)}
    runs = _runs(ref, seen, using=using)
    items += [
        as_foreseen(outlook) for _run, outlook in foreseen_of(runs.open, now=now, using=using, entities=about.there)
    ]
    items += _events(ref, seen, using=using)
    ahead = [item.task for item in items if item.task and item.state in OPEN]
    stands = standing_of(ahead, about.there, using=using)
    items = [item._replace(stands=stands.get(item.task.pk, "")) if item.task else item for item in items]
    behind = {*FINAL, EVENT}
    later = [item for item in items if item.at is None or item.state not in behind]
    return {
        "ahead": in_order(later, now),
        "past": in_order((item for item in items if item.state in behind), now)[::-1],
        "items": items,
        "schedules": _schedules(ref, seen, now),
        "runs": [(run, reader.end_of(run)) for run in runs.latest],
        "machines": [
            (line, run_picture(line)) for line in machine_lines(runs.latest, people=reader.reads_people_of, using=using)
        ],
        "is_cut": is_cut,
        "most": MAX_SHOWN,
        "signs": [
            *((state.value, state.label) for state in State),
            (FORESEEN, pgettext("timeline", "foreseen")),
            (EVENT, pgettext("timeline", "event")),
        ],
    }


def picture(items: Sequence[Item], *, span: str, now: datetime, zone: tzinfo) -> dict[str, Any]:
    """
    Draw items, and say how else they may be drawn.

    Args:
        items: Of the entity, and of what belongs to it.
        span: How much time the picture is of: one of ``SPANS``; else all of it.
        now: Story time.
        zone: The site's.
    """
    drawn = drawing(items, span=SPANS.get(span), most=MAX_LANES, now=now, zone=zone)
    spans = [
        ("day", pgettext("timeline", "Day")),
        ("week", pgettext("timeline", "Week")),
        ("month", pgettext("timeline", "Month")),
        ("", pgettext("timeline", "All of it")),
    ]
    return {"drawing": drawn, "span": span if span in SPANS else "", "spans": spans}


def _events(ref: EntityRef, seen: Collection[str], *, using: str) -> list[Item]:
    """The latest events of the entity that mean something to timelines whose rows the one who looks may see."""
    known = {event for definition in registry if definition.name in seen for event in definition.events}
    if not known or not ref.label:
        return []
    events = Event.objects.using(using).for_entity(ref).filter(name__in=known).order_by("-recorded_at", "-pk")
    events = events.only("name", "occurred_at")
    label, lane = pgettext("timeline", "event"), pgettext("timeline", "Events")
    return [Item(event.name, event.occurred_at, EVENT, label, "", lane=lane) for event in events[:MAX_EVENTS]]


def nearest(tasks: ScheduledTaskQuerySet, reader: Reader) -> tuple[list[Item], bool]:
    """Read in one statement what an entity has nearest to now on each side, and whether that is not all of it."""
    rows, most = tasks.model._default_manager.using(tasks.db), MAX_SHOWN + 1
    past = tasks.final().order_by("-scheduled_at", "-pk").values("pk")[:most]
    ahead = tasks.open().in_order().values("pk")[:most]
    found = list(rows.filter(pk__in=past).union(rows.filter(pk__in=ahead), all=True))
    found.sort(key=lambda task: (task.scheduled_at, task.pk))
    ended = [task for task in found if not task.is_open]
    return as_items(ended[::-1], [task for task in found if task.is_open], reader, using=tasks.db)


def nearest_of_many(
    tasks: ScheduledTaskQuerySet, task_keys: Collection[str], reader: Reader
) -> tuple[list[Item], bool]:
    """Do the same for very many entities: by kind, state and time, as what they have would have to be read whole otherwise."""
    past, ahead = first_of_kinds(tasks, task_keys, [First(FINAL, latest=True), First(OPEN)], MAX_SHOWN + 1)
    return as_items(past, ahead, reader, using=tasks.db)


def as_items(
    past: list[ScheduledTask], ahead: list[ScheduledTask], reader: Reader, *, using: str
) -> tuple[list[Item], bool]:
    """Show what was read: the latest of the past, and what is ahead, ``MAX_SHOWN`` of each; and whether there is more."""
    shown = [*past[:MAX_SHOWN][::-1], *ahead[:MAX_SHOWN]]
    recall(shown, using=using)
    return [_row(task, reader) for task in shown], len(past) > MAX_SHOWN or len(ahead) > MAX_SHOWN


class _Runs(NamedTuple):
    """Those of an entity that are open, and the latest ``MAX_RUNS``, open or ended."""

    open: list[TimelineRun]
    latest: list[TimelineRun]


def _runs(ref: EntityRef, seen: Collection[str], *, using: str) -> _Runs:
    """Read both in one statement; each part by an index of its own, as the system may have very many."""
    runs = TimelineRun.objects.using(using)
    of_entity = runs.for_entity(ref).filter(timeline__in=seen)
    latest = of_entity.order_by("-started_at", "pk").values("pk")[:MAX_RUNS]
    found = sorted(
        of_entity.open().union(runs.filter(pk__in=latest, ended_at__isnull=False), all=True), key=lambda run: run.pk
    )
    found.sort(key=lambda run: run.started_at, reverse=True)
    return _Runs([run for run in found if run.is_open], found[:MAX_RUNS])


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
