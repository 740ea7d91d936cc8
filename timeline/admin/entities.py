"""The page of an entity: its past, now and future on one axis, and in a table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time, timedelta, tzinfo
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from timeline.admin.actions import wordings
from timeline.admin.entity_picture import drawing
from timeline.admin.guard_answers import standing_of
from timeline.admin.references import Called, called, why_in_words
from timeline.admin.subject import Reader, sees
from timeline.dialects import dialect_of
from timeline.exceptions import UnknownTask
from timeline.features.holds.pages import holds_over, told_holds
from timeline.features.holds.reading import held_in_words
from timeline.features.machines.pictures import run_picture
from timeline.features.machines.reading import entries_to_tell, machine_lines
from timeline.features.recurring.reading import schedule_in_words
from timeline.lifecycle import FINAL, OPEN, State
from timeline.models import EntityRef, Event, Hold, RunEntry, ScheduledTask, Scope, TimelineRun
from timeline.reading.explanation import standing
from timeline.reading.in_the_way import asks_in_the_way, in_the_way
from timeline.reading.reason_texts import keep_said, with_said
from timeline.registry import registry
from timeline.store.multi_query import Words, gather_now
from timeline.timing import EARLIEST, LATEST
from timeline.told_times import from_now

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django_stubs_ext import StrPromise

    from timeline.admin.subject import About
    from timeline.models.task import ScheduledTaskQuerySet
    from timeline.policy import Action
    from timeline.reading.outlook import Outlook

MAX_SHOWN = 100  # So many are shown on each side of now, the nearest.
FORESEEN = "foreseen"
EVENT = "event"
_BEHIND: Final = frozenset({*FINAL, EVENT})
MAX_EVENTS = 50
MAX_RUNS = 20
MAX_MACHINES = 3  # Of which the first line says where they are.
MAX_LANES = 24  # Of the picture; the tables have all.
_A_DAY: Final = timedelta(days=1)
SPANS: Final = {"day": timedelta(days=1), "week": timedelta(days=7), "month": timedelta(days=30)}  # Around now.


class Item(NamedTuple):
    """
    One thing on the axis.

    Args:
        at: When it ended, is due or is expected; None: nobody can say.
        state: A state, ``FORESEEN`` or ``EVENT``.
        task: None: it has no row yet, or is an event.
        lane: Where it stands in the picture; empty: with others of its key.
        group: 0: of the entity itself; else the number of the group that belongs to it.
        stands: Whether it would run as things stand, in words; empty: it has no guards.
        held: Until when something keeps it, in words; empty: nothing does.
        verbs: What who looks may say to what it asks for, with the words of the buttons.
        title: What people call an event.
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
    held: str = ""
    verbs: Sequence[tuple[Action, StrPromise]] = ()
    title: str = ""

    @property
    def full_key(self) -> str:
        """Its key, and which of many it is."""
        return self.task.full_key if self.task else self.key

    @property
    def is_ghost(self) -> bool:
        """Whether it would have been done, and was called off: the picture has it where it was due."""
        return self.task is not None and self.state == State.CANCELLED

    @property
    def drawn_at(self) -> datetime | None:
        """Where it stands in the picture."""
        return self.task.scheduled_at if self.task is not None and self.is_ghost else self.at

    @property
    def is_ahead(self) -> bool:
        """Whether it has not ended, nor been."""
        return self.state not in _BEHIND

    @property
    def called(self) -> Called:
        """How people call it."""
        if self.state == EVENT:
            return Called(self.title, self.key, "", f"{self.title} ({self.key})" if self.title else self.key)
        return called(self.full_key)


class Read(NamedTuple):
    """
    What one statement reads for an entity's page: what is nearest to now and latest, as far as who looks may see it.

    ``seen_holds`` are ids of holds whose decider they may read; ``task_keys`` is empty unless asked for.
    ``kept``: what ``asks_in_the_way`` has found; ``top``: what was found of what else was asked.
    """

    now: datetime
    tasks: list[ScheduledTask]
    runs: list[TimelineRun]
    events: list[Event]
    entries: list[RunEntry]
    holds: list[Hold]
    seen_holds: set[UUID]
    task_keys: list[str]
    kept: list[list[Any]]
    top: list[list[Any]]


def read_entity(
    about: About, visible: ScheduledTaskQuerySet, reader: Reader, *, keys: bool, top: Sequence[QuerySet[Any] | Words]
) -> Read:
    """
    Read what the page of an entity shows of its own. ``keys``: also the keys of all tasks there are; ``top``: what else.
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
        Words(dialect_of(using).sql("task_keys_there")) if keys else Hold.objects.none().values_list("pk"),
        *top,
        *asks_in_the_way(using=using),
    ]
    now, [tasks, found, told, entries, there, people, task_keys, *rest] = gather_now(asked, using=using)
    keep_said(tasks)
    told.sort(key=lambda event: (event.recorded_at, event.pk), reverse=True)
    return Read(
        now,
        tasks,
        found,
        told,
        entries,
        there,
        {key for [key] in people},
        task_keys,
        rest[len(top) :],
        rest[: len(top)],
    )


def _seen(about: About, reader: Reader, using: str) -> set[str]:
    return {known.name for known in registry if sees(reader.policy, reader.user, known.name, about.ref, using)}


def timeline_of(about: About, read: Read, reader: Reader, outlooks: Sequence[Outlook], *, using: str) -> dict[str, Any]:
    """Put together what the page of an entity shows."""
    now, latest = read.now, in_order_of_start(read.runs)[:MAX_RUNS]
    tasks = sorted(read.tasks, key=lambda task: (task.scheduled_at, task.pk))
    items, is_cut = as_items(
        [task for task in tasks if not task.is_open][::-1], [task for task in tasks if task.is_open], reader
    )
    items += [as_foreseen(outlook) for outlook in outlooks]
    label, lane = pgettext("timeline", "event"), pgettext("timeline", "Events")
    items += [
        Item(
            event.name,
            event.occurred_at,
            EVENT,
            label,
            "",
            lane=lane,
            title=registry.title_of_event(event.name, about.ref.label),
        )
        for event in read.events
    ]
    items = with_what_is_in_the_way(items, read.kept, reader, using=using)
    ahead = [item.task for item in items if item.task and item.state in OPEN]
    held = {item.task.pk for item in items if item.task and item.held}
    stands = standing_of(ahead, about.there, held=held, using=using)
    items = [item._replace(stands=stands.get(item.task.pk, "")) if item.task else item for item in items]
    later = [item for item in items if item.at is None or item.is_ahead]
    lines = machine_lines(latest, people=reader.reads_people_of, read=read.entries, using=using)
    return {
        "ahead": in_order(later, now),
        "past": in_order((item for item in items if not item.is_ahead), now)[::-1],
        "items": items,
        "schedules": _schedules(about.ref, _seen(about, reader, using), now),
        "runs": [(run, reader.end_of(run)) for run in latest],
        "machines": [(line, run_picture(line)) for line in lines],
        "holds": told_holds(read.holds, read.seen_holds),
        "is_cut": is_cut,
        "most": MAX_SHOWN,
    }


def picture(
    items: Sequence[Item], asked: Mapping[str, str], *, holds: Iterable[Hold], now: datetime, zone: tzinfo
) -> dict[str, Any]:
    """
    Draw items in the site's zone. ``holds`` are open ones.

    ``asked`` may have ``span``, one of ``SPANS``, anything else is all of it; and with that of a day ``day``, another one.
    """
    until, span = _held_until(holds), asked.get("span", "")
    today = now.astimezone(zone).date()
    day = _day(asked.get("day", "")) if span == "day" else None
    part = SPANS.get(span) if day is None else (_midnight(day, zone), _midnight(day + _A_DAY, zone))
    drawn = drawing(items, span=part, most=MAX_LANES, held_until=until, now=now, zone=zone)
    spans = [
        ("day", pgettext("timeline", "Day")),
        ("week", pgettext("timeline", "Week")),
        ("month", pgettext("timeline", "Month")),
        ("", pgettext("timeline", "All of it")),
    ]
    known = {FORESEEN: pgettext("timeline", "foreseen"), EVENT: pgettext("timeline", "event")}
    known = {**{state.value: str(state.label) for state in State}, **known}
    seen = {mark.item.state for lane in drawn.lanes for mark in lane.marks} if drawn else set()
    return {
        "drawing": drawn,
        "span": span if span in SPANS else "",
        "spans": spans,
        "day": day,
        "days": [(day or today) - _A_DAY, (day or today) + _A_DAY] if span == "day" else [],
        "signs": [(state, label) for state, label in known.items() if state in seen],
    }


def _day(given: str) -> date | None:
    with suppress(ValueError):
        day = date.fromisoformat(given)
        if EARLIEST.date() + 2 * _A_DAY < day < LATEST.date() - 2 * _A_DAY:
            return day
    return None


def _midnight(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time.min, tzinfo=zone)


def answer(items: Sequence[Item], *, holds: Sequence[Hold], now: datetime, zone: tzinfo) -> str:
    """Say in one line what is next of all items, and whether it is on hold. A timer comes only if nothing happens before."""
    ahead = in_order((item for item in items if item.at is not None and item.is_ahead), now)
    if not ahead or ahead[0].at is None:
        said = _("Nothing is ahead.")
        return f"{said} {_told_held(None, holds)}"
    item, at = ahead[0], ahead[0].at
    held, task = _told_held(item, holds), item.lane or item.called.title or item.full_key
    if item.held:
        return _("Next: %(task)s, due %(at)s, but %(held)s.") % {
            "task": task,
            "at": _in_days(at, now, zone),
            "held": item.held,
        }
    if item.state == State.ACTIVE:
        said = _("Now: %(task)s is running.") % {"task": task}
    else:
        known = {"task": task, "at": _in_days(at, now, zone), "span": from_now(at, now)}
        if _is_timer(item.key):
            said = _("If nothing happens: %(task)s, %(at)s, %(span)s.") % known
        else:
            said = _("Next: %(task)s, %(at)s, %(span)s.") % known
    return f"{said} {held}"


def machines_at(runs: Iterable[TimelineRun], *, now: datetime, zone: tzinfo) -> str:
    """
    Say in one line in which states the machines are that are open, each since when; of none, in which the last one ended.
    ``runs``: the latest first. Empty: there are no machines.
    """
    moving = [run for run in runs if run.state and run.state_at is not None]
    ended = sorted(moving, key=lambda run: run.state_at or now)[-1:]
    told = [run for run in moving if run.is_open][:MAX_MACHINES] or ended
    said = []
    for run in told:
        state = registry.title_in(run.timeline, run.state) or run.state
        if len(told) > 1:
            state = f"{run.timeline} {run.key}".strip() + f": {state}"
        assert run.state_at is not None  # noqa: S101 (asked above)
        said.append(_("%(state)s, since %(at)s.") % {"state": state, "at": _since(run.state_at, now, zone)})
    return " ".join(said)


def _since(at: datetime, now: datetime, zone: tzinfo) -> str:
    """A time in the past as people say it: of today without the day."""
    local = at.astimezone(zone)
    return f"{local:%H:%M}" if local.date() == now.astimezone(zone).date() else _in_days(at, now, zone)


def _is_timer(task_key: str) -> bool:
    with suppress(UnknownTask):
        return registry.task(task_key)[1].is_timer
    return False


def _told_held(item: Item | None, holds: Sequence[Hold]) -> str:
    """Whether the next item is on hold. What belongs to the entity may run while all of its own is held."""
    own = held_in_words(hold for hold in holds if hold.scope in (Scope.ENTITY, Scope.EVERYTHING))
    if item is not None and item.group and not item.held and own:
        return _("Its own tasks: %(held)s.") % {"held": own}
    if own:
        return f"{capfirst(own)}."
    return _("Held: a part of it.") if holds and item is not None else _("Held: no.")


def _in_days(at: datetime, now: datetime, zone: tzinfo) -> str:
    """Say when, as people do of these days."""
    local, days = at.astimezone(zone), (at.astimezone(zone).date() - now.astimezone(zone).date()).days
    known = {0: _("today %(time)s"), 1: _("tomorrow %(time)s"), -1: _("yesterday %(time)s")}
    return known[days] % {"time": f"{local:%H:%M}"} if days in known else f"{local:%Y-%m-%d %H:%M}"


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
    """Ask for open runs with the latest, and for the latest alone; each part by an index, as the system may have very many."""
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
    why = why_in_words(outlook.task_key, outlook.why)
    return Item(outlook.task_key, outlook.expected_at, FORESEEN, pgettext("timeline", "foreseen"), why)


def _row(task: ScheduledTask, reader: Reader) -> Item:
    at, label = task.finished_at or task.scheduled_at, str(State(task.state).label)
    return Item(task.task_key, at, task.state, label, standing(reader.shown(task)), task)


def with_what_is_in_the_way(
    items: Iterable[Item], kept: Sequence[Sequence[Any]], reader: Reader, *, using: str
) -> list[Item]:
    """Say of tasks until when something keeps them, and what who looks may say to what they ask for."""
    items = list(items)
    held = in_the_way([item.task for item in items if item.task], kept, using=using)
    return [_with_answers(item, held.get(item.task.pk, ""), reader) if item.task else item for item in items]


def _with_answers(item: Item, held: str, reader: Reader) -> Item:
    task = item.task
    if task is None or not task.is_open or task.state == State.ACTIVE:
        return item
    verbs = [(action, wordings()[action].verb) for action in reader.answers(task)]
    return item._replace(held=held, verbs=verbs)


def in_order(items: Iterable[Item], now: datetime) -> list[Item]:
    """By time; what is foreseen at the same moment as its predecessor comes after it, and some day is last."""
    return sorted(items, key=lambda item: (item.at is None, item.at or now, item.state == FORESEEN))
