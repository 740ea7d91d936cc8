"""What the list is asked for, as its address says: filters, search, and where the page begins."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from django.utils.formats import get_format
from django.utils.translation import pgettext_lazy

from timeline.conf import get_settings
from timeline.lifecycle import FINAL, OPEN, ReasonCode, State
from timeline.models.kin import sought
from timeline.timing import EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from django_stubs_ext import StrPromise

    from timeline.models import ScheduledTask
    from timeline.models.task import ScheduledTaskQuerySet

# In the order in which the list of what is open shows them.
_TITLES: dict[str, StrPromise] = {
    "overdue": pgettext_lazy("timeline", "Overdue"),
    "now": pgettext_lazy("timeline", "Now"),
    "today": pgettext_lazy("timeline", "Today"),
    "tomorrow": pgettext_lazy("timeline", "Tomorrow"),
    "week": pgettext_lazy("timeline", "This week"),
    "later": pgettext_lazy("timeline", "Later"),
    "yesterday": pgettext_lazy("timeline", "Yesterday"),
    "earlier": pgettext_lazy("timeline", "Earlier"),
}
# What the filter of states may say, beside each state's own name.
OPEN_ONES: Final = "open"
OVERDUE: Final = "overdue"
ENDED: Final = "ended"
ALL: Final = "all"
# Within which time they have ended.
ENDED_WITHIN: Final = {"day": timedelta(days=1), "week": timedelta(days=7)}
LONGEST = 200
PAYLOAD: Final = "payload."  # What an address asks of payloads begins so: ``payload.plan=gold``.
_HOURS: Final = frozenset(map(str, range(24)))


class ListBand(NamedTuple):
    """Rows of one page that belong together."""

    name: str
    title: StrPromise
    tasks: list[ScheduledTask]


def bounds(day: date, zone: tzinfo) -> tuple[datetime, datetime]:
    """When a day begins and ends there, in UTC."""
    first, last = (datetime.combine(it, time.min, tzinfo=zone) for it in (day, day + timedelta(days=1)))
    return first.astimezone(UTC), last.astimezone(UTC)


def hour_bounds(day: date, hour: int, zone: tzinfo) -> tuple[datetime, datetime]:
    """Begin and end of an hour of the wall clock, in UTC. One shown twice is as long as both; one passed over is empty."""
    first, last = bounds(day, zone)
    midnight = datetime.combine(day, time.min, tzinfo=zone)
    begin, end = ((midnight + timedelta(hours=number)).astimezone(UTC) for number in (hour, hour + 1))
    return min(max(begin, first), last), min(max(end, first), last)


def is_overdue(task: ScheduledTask, now: datetime) -> bool:
    """Whether it is due for longer than two polls, and nobody runs it."""
    return task.is_open and task.state != State.ACTIVE and task.scheduled_at <= now - get_settings().overdue_after


def in_bands(tasks: Iterable[ScheduledTask], *, now: datetime, zone: tzinfo) -> list[ListBand]:
    """Put the tasks of a page, given in order of their time, into bands; within one their order stays."""
    found: dict[str, ListBand] = {}
    for task in tasks:
        name = _band(task, now, zone)
        found.setdefault(name, ListBand(name, _TITLES[name], [])).tasks.append(task)
    bands = list(found.values())
    return sorted(bands, key=lambda band: band.name != "overdue")


def _band(task: ScheduledTask, now: datetime, zone: tzinfo) -> str:
    if is_overdue(task, now):
        return "overdue"
    if task.state not in FINAL and task.scheduled_at <= now:
        return "now"
    today = now.astimezone(zone).date()
    return _day_band(task.scheduled_at.astimezone(zone).date(), today)


def _day_band(day: date, today: date) -> str:
    ahead = (day - today).days
    if ahead < 0:
        return "yesterday" if ahead == -1 else "earlier"
    if ahead < 2:
        return "tomorrow" if ahead else "today"
    first_weekday = int(get_format("FIRST_DAY_OF_WEEK"))  # 0 is Sunday.
    left = (first_weekday - today.isoweekday() - 1) % 7  # Days of the week that come after today.
    return "week" if ahead <= left else "later"


STATES: Final[dict[str, frozenset[State]]] = {
    OPEN_ONES: OPEN,
    OVERDUE: OPEN - {State.ACTIVE},
    **{state.value: frozenset({state}) for state in State},
    ENDED: FINAL,
    ALL: frozenset(State),
}


class Key(NamedTuple):
    """Where a page begins or ends: the time of a task, and its id."""

    at: datetime
    id: UUID

    def __str__(self) -> str:
        return f"{self.at.isoformat()}_{self.id}"


class PayloadValue(NamedTuple):
    """A key at the top of payloads, and its value as text."""

    key: str
    value: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """
    What the list shows.

    Args:
        state: A key of ``STATES``.
        kind: Label of the entities' model.
        day: Of the site's zone, on which tasks are due.
        hour: Of that day, 0 to 23; None: any.
        reason: Code of why they came to where they are.
        ended: A key of ``ENDED_WITHIN``.
        payload: What payloads have to say. No index knows that, so ``narrow`` leaves it out: see ``page_of``.
        q: Id of an entity, its label and id, or the id of a task.
        after, before: The page begins after this task, or ends before it.
    """

    state: str = OPEN_ONES
    timeline: str = ""
    task: str = ""
    kind: str = ""
    day: date | None = None
    hour: int | None = None
    reason: str = ""
    ended: str = ""
    payload: PayloadValue | None = None
    q: str = ""
    after: Key | None = None
    before: Key | None = None

    @property
    def states(self) -> frozenset[State]:
        """States asked for."""
        return STATES[self.state]

    @property
    def latest_first(self) -> bool:
        """Whether the latest come first: where it is about what has ended."""
        return not self.states <= OPEN

    @property
    def looks_back(self) -> bool:
        """Whether it is about days that have passed: for what has ended, or is overdue."""
        return self.state == OVERDUE or self.states <= FINAL

    @property
    def is_narrowed(self) -> bool:
        """Whether anything is asked beyond what the page shows by itself."""
        return self.first_page() != Question()

    def first_page(self) -> Question:
        """The same question, from the beginning."""
        return replace(self, after=None, before=None)

    def where(self, **changes: Any) -> str:
        """The address of the changed question, beginning with ``?``."""
        changed = replace(self, **changes)
        said = {name: value for name, value in asdict(changed).items() if value not in ("", None)}
        if said.pop("payload", None) and changed.payload:
            said[f"{PAYLOAD}{changed.payload.key}"] = changed.payload.value
        said |= {name: str(Key(*said[name])) for name in ("after", "before") if name in said}
        if "day" not in said:
            said.pop("hour", None)
        if said.get("state") == OPEN_ONES:
            del said["state"]
        return f"?{urlencode(said)}"

    def narrow(self, tasks: ScheduledTaskQuerySet, *, now: datetime, zone: tzinfo) -> ScheduledTaskQuerySet:
        """Tasks that the question is about, but for their state."""
        if self.day:
            span = bounds(self.day, zone) if self.hour is None else hour_bounds(self.day, self.hour, zone)
            tasks = tasks.due_between(*span)
        if self.state == OVERDUE:
            tasks = tasks.filter(scheduled_at__lte=now - get_settings().overdue_after)
        if self.ended:
            tasks = tasks.filter(finished_at__gt=now - ENDED_WITHIN[self.ended])
        return self.narrow_kind(tasks)

    def narrow_kind(self, tasks: ScheduledTaskQuerySet) -> ScheduledTaskQuerySet:
        """Tasks that the question is about, but for state and time."""
        if self.timeline:
            tasks = tasks.of_timeline(self.timeline)
        if self.task:
            tasks = tasks.with_handler([self.task])
        if self.kind:
            tasks = tasks.about(self.kind)
        if self.reason:
            tasks = tasks.filter(reason_code=self.reason)
        return tasks.filter(sought(self.q, using=tasks.db)) if self.q else tasks

    def as_filters(self, *, now: datetime, zone: tzinfo) -> dict[str, Any]:
        """The same question as a bulk action keeps it: in moments, so that it means the same when it is read later."""
        said: dict[str, Any] = {name: getattr(self, name) for name in ("timeline", "task", "kind", "reason", "q")}
        if self.state != ALL:
            said["state"] = sorted(state.value for state in self.states)
        first, last = None, None
        if self.day:
            first, last = bounds(self.day, zone) if self.hour is None else hour_bounds(self.day, self.hour, zone)
        if self.state == OVERDUE:
            late = now - get_settings().overdue_after + timedelta(microseconds=1)  # What is due just then is late, too.
            last = min(late, last) if last else late
        since = now - ENDED_WITHIN[self.ended] if self.ended else None
        moments = (("due_after", first), ("due_before", last), ("ended_after", since))
        said |= {name: at.isoformat() for name, at in moments if at}
        return {name: value for name, value in said.items() if value}


def asked(given: Mapping[str, str]) -> Question:
    """Read the question from an address. What makes no sense there is left out."""
    words = {
        name: given.get(name, "").replace("\x00", "").strip()[:LONGEST] for name in ("timeline", "task", "kind", "q")
    }
    state, day = given.get("state", ""), _day(given.get("day", ""))
    reason, ended = given.get("reason", ""), given.get("ended", "")
    return Question(
        **words,
        state=state if state in STATES else OPEN_ONES,
        day=day,
        hour=_hour(given.get("hour", "")) if day else None,
        reason=reason if reason in set(ReasonCode) else "",
        ended=ended if ended in ENDED_WITHIN else "",
        payload=_payload(given),
        after=_key(given.get("after", "")),
        before=_key(given.get("before", "")),
    )


def _payload(given: Mapping[str, str]) -> PayloadValue | None:
    """What is asked of payloads: ``payload.plan=gold``, or as the form has it, ``payload=plan=gold``."""
    key, equals, value = given.get("payload", "").partition("=")
    for name in given:
        if name.startswith(PAYLOAD):
            key, equals, value = name.removeprefix(PAYLOAD), "=", given[name]
    key, value = (text.replace("\x00", "").strip()[:LONGEST] for text in (key, value))
    return PayloadValue(key, value) if key and equals else None


def _day(text: str) -> date | None:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if 1970 < day.year < 9000 else None


def _hour(text: str) -> int | None:
    return int(text) if text in _HOURS else None


def _key(text: str) -> Key | None:
    at, _bar, key = text.partition("_")
    try:
        found = Key(datetime.fromisoformat(at), UUID(key))
    except ValueError:
        return None
    return found if found.at.utcoffset() is not None and EARLIEST <= found.at < LATEST else None
