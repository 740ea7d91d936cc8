"""The list of upcoming events: rows in bands, the strip, the filters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.db.models import Q
from django.db.models.lookups import Exact
from django.utils.timesince import timesince, timeuntil
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from timeline.admin.list_query import ALL, ENDED, OPEN_ONES, OVERDUE, Key, PayloadValue, Question, in_bands, is_overdue
from timeline.admin.outcomes import TaskOutcome
from timeline.admin.references import REASONS, Called, Named, called, names_of, state_of, state_titles
from timeline.admin.strip import DAYS, Hour, Strip, hour_in_words, hours_of, strip_of
from timeline.admin.subject import Reader
from timeline.conditions import PayloadText
from timeline.lifecycle import ReasonCode
from timeline.reading.dead_letters import fixed_since
from timeline.reading.explanation import standing
from timeline.reading.in_the_way import in_the_way
from timeline.reading.reason_texts import recall
from timeline.reading.tallies import Amount
from timeline.registry import registry
from timeline.store.earliest import FirstAsked, first_page
from timeline.store.index_selection import KindsThere

if TYPE_CHECKING:
    from collections.abc import Callable

    from django_stubs_ext import StrPromise

    from timeline.models import ScheduledTask
    from timeline.models.task import ScheduledTaskQuerySet


SIZE = 50


LOOKED_AT: Final = 2_000  # Tasks whose payloads are read for a page.


class ListPage(NamedTuple):
    """
    Rows, and where the pages around them begin; None: there are none. ``looked_up_to``: where it stopped looking at payloads,
    though there are more tasks; None: it looked at all, or found enough.
    """

    tasks: list[ScheduledTask]
    next: Key | None
    previous: Key | None
    looked_up_to: datetime | None = None


def page_of(
    tasks: ScheduledTaskQuerySet,
    question: Question,
    *,
    now: datetime,
    zone: tzinfo,
    kinds: Callable[[], Collection[str]] | None = None,
) -> ListPage:
    """
    Read one page of what is asked, in one query; ``kinds`` gives the kinds of tasks there are, if that needs them. If something
    is asked of payloads, there are two queries, and it looks at so many tasks at most (``LOOKED_AT``).
    """
    backward = question.before is not None
    latest = question.latest_first != backward
    rows = question.narrow(tasks, now=now, zone=zone)
    if (key := question.before or question.after) is not None:
        rows = rows.filter(_beyond(key, latest=latest))
    first, last = FirstAsked(question.states, latest), None
    if question.payload is None:
        found = first_page(rows, first, SIZE + 1, kinds=kinds)
    else:
        found, last = _with_payload(tasks, rows, question.payload, first, kinds)
    more, shown = len(found) > SIZE or last is not None, found[:SIZE]
    begin, end = (_key_of(shown[0]), _key_of(shown[-1])) if shown else (None, None)
    end = last or end
    if backward:
        shown.reverse()
        begin, end = end, begin
    goes_on, went_before = (key is not None, more) if backward else (more, key is not None)
    return ListPage(
        shown, end if goes_on else None, begin if went_before else None, last.at if last is not None else None
    )


def _with_payload(
    tasks: ScheduledTaskQuerySet,
    rows: ScheduledTaskQuerySet,
    asked: PayloadValue,
    first: FirstAsked,
    kinds: Callable[[], Collection[str]] | None,
) -> tuple[list[ScheduledTask], Key | None]:
    """
    Look through the first tasks for a value in their payloads, which no index has. Also say up to which one it has looked.
    None: there are no more, or there was enough.
    """
    fits = Exact(PayloadText(asked.key), asked.value)
    some = first_page(rows.only("scheduled_at").annotate(fits=fits), first, LOOKED_AT + 1, kinds=kinds)
    found = [task.pk for task in some[:LOOKED_AT] if task.fits][: SIZE + 1]  # type: ignore[attr-defined]
    read = sorted(tasks.filter(pk__in=found), key=_key_of, reverse=first.latest)
    is_cut = len(some) > LOOKED_AT and len(found) <= SIZE
    return read, _key_of(some[LOOKED_AT - 1]) if is_cut else None


def _beyond(key: Key, *, latest: bool) -> Q:
    """Condition on tasks that come after the key. The first half lets an index begin there."""
    side = "lt" if latest else "gt"
    tie = Q(**{f"scheduled_at__{side}": key.at}) | Q(**{f"pk__{side}": key.id})
    return Q(**{f"scheduled_at__{side}e": key.at}) & tie


def _key_of(task: ScheduledTask) -> Key:
    return Key(task.scheduled_at, task.pk)


class ListRow(NamedTuple):
    """
    One line of a list of tasks; ``state`` is that of the task, in words.

    Args:
        span: How far from now it is due, or has ended.
        why: Why it is so; may be empty.
        held: Until when something keeps it, in words; empty: nothing does.
        may_decide: Whether who looks may approve or reject it.
        fixed: That it failed and what came of it since, in words; empty: it has not failed, or nothing did.
        becomes: What somebody is about to make of it; None: nothing, or nobody can say.
    """

    task: ScheduledTask
    called: Called
    entity: Named
    span: str
    why: str
    is_overdue: bool
    held: str = ""
    may_decide: bool = False
    fixed: str = ""
    becomes: TaskOutcome | None = None

    @property
    def state(self) -> str:
        return state_of(self.task)


class Choice(NamedTuple):
    """One choice of a filter."""

    value: str
    title: str
    is_chosen: bool


class FilterChip(NamedTuple):
    """A filter in force, and the address of the list without it."""

    name: str
    value: str
    without: str


class Listed(NamedTuple):
    """A band of rows."""

    name: str
    title: StrPromise
    rows: list[ListRow]


def listing(
    tasks: ScheduledTaskQuerySet,
    question: Question,
    *,
    kept: Sequence[Sequence[Any]],
    now: datetime,
    zone: tzinfo,
    reader: Reader,
    site: str,
) -> dict[str, Any]:
    """
    Put together what the list shows of tasks that the user may see. ``kept``: what ``asks_in_the_way`` has found; ``site`` is
    the name of the admin site.
    """
    kinds = KindsThere(tasks.db)
    page = page_of(tasks, question, now=now, zone=zone, kinds=kinds)
    recall(page.tasks, using=tasks.db)
    names = names_of((task.entity_ref for task in page.tasks), using=tasks.db, site=site)
    held = in_the_way(page.tasks, kept, using=tasks.db)
    fixed = fixed_since(page.tasks, using=tasks.db)
    rows = {
        task.pk: row_of(task, names[task.entity_ref], now, reader)._replace(
            held=held.get(task.pk, ""),
            may_decide=bool(reader.answers(task)),
            fixed=fixed.get(task.pk, ""),
        )
        for task in page.tasks
    }
    bands = in_bands(page.tasks, now=now, zone=zone)
    # What payloads say is not counted: no index has it.
    strip = None if question.payload else strip_of(tasks, question, now=now, zone=zone, kinds=kinds)
    hours = [] if question.payload else hours_of(tasks, question, now=now, zone=zone, kinds=kinds)
    plain = {"after": None, "before": None}
    following = question.where(**plain | {"after": page.next}) if page.next else ""
    previous = question.where(**plain | {"before": page.previous}) if page.previous else ""
    return {
        "bands": [Listed(band.name, band.title, [rows[task.pk] for task in band.tasks]) for band in bands],
        "shown": len(page.tasks),
        "states": {task.state for task in page.tasks},
        "next": following,
        "previous": previous,
        "first": question.where(**plain) if question.after or question.before else "",
        "looked_up_to": page.looked_up_to,
        "further": previous if question.before else following,
        "looked_at": LOOKED_AT,
        "matching": _matching(page, question, strip, hours) if strip else None,
        "may_be_all": question.payload is None,
        "strip": strip.days if strip else [],
        "strip_title": _strip_title(question),
        "hours": hours,
        "hours_title": _hours_title(question),
        "everywhere": question.where(state=ALL, **plain) if question.state != ALL else "",
    }


def _matching(page: ListPage, question: Question, strip: Strip, hours: Sequence[Hour]) -> Amount | None:
    """How many tasks match on all pages, as the strips have counted them; None: they have not."""
    if page.next is None and page.previous is None:
        return Amount(len(page.tasks))
    if question.day is None:
        return strip.total
    chosen = [each for each in hours if question.hour is None or each.is_chosen]
    return sum((Amount(each.due, each.is_more) for each in chosen), Amount())


def _strip_title(question: Question) -> str:
    said = {"state": _states()[question.state], "days": DAYS}
    if question.looks_back:
        return _("Tasks by the day they were due, the last %(days)d days; state: %(state)s") % said
    return _("Tasks by the day they are due, the next %(days)d days; state: %(state)s") % said


def _hours_title(question: Question) -> str:
    said = {"state": _states()[question.state], "day": question.day}
    return _("Tasks by the hour they are due, on %(day)s; state: %(state)s") % said


def row_of(task: ScheduledTask, entity: Named, now: datetime, reader: Reader) -> ListRow:
    """Put together one line."""
    said = standing(reader.shown(task))
    return ListRow(task, called(task.full_key), entity, _span(task, now), said, is_overdue(task, now))


def _span(task: ScheduledTask, now: datetime) -> str:
    at = task.finished_at or task.scheduled_at
    is_short = abs(now - at) < timedelta(minutes=1)
    if task.finished_at:
        return _("ended just now") if is_short else _("ended %(span)s ago") % {"span": timesince(at, now)}
    if at > now:
        return _("in less than a minute") if is_short else _("in %(span)s") % {"span": timeuntil(at, now)}
    return _("due just now") if is_short else _("due %(span)s ago") % {"span": timesince(at, now)}


def filters(question: Question) -> dict[str, list[Choice]]:
    """The choices of each filter. What a row may have and no timeline declares (any more) is there while it is chosen."""
    timelines = sorted(definition.name for definition in registry)
    kinds = sorted({definition.label for definition in registry if definition.label})
    keys = [key for key in registry.task_keys() if not question.timeline or key.startswith(f"{question.timeline}.")]
    return {
        "state": [Choice(value, title, value == question.state) for value, title in _states().items()],
        "timeline": _choices(timelines, question.timeline),
        "task": _choices(keys, question.task, registry.titled),
        "kind": _choices(kinds, question.kind),
        # "Done" is left out: so ended what completed, and the filter of states has that.
        "reason": [
            Choice(code.value, str(said), code == question.reason)
            for code, said in REASONS.items()
            if code != ReasonCode.DONE or code == question.reason
        ],
    }


def chips(question: Question) -> list[FilterChip]:
    """The filters in force."""
    said = {
        "state": (pgettext("timeline", "State"), "" if question.state == OPEN_ONES else _states()[question.state]),
        "timeline": (pgettext("timeline", "Timeline"), question.timeline),
        "task": (pgettext("timeline", "Task"), registry.titled(question.task)),
        "kind": (pgettext("timeline", "Kind"), question.kind),
        "day": (pgettext("timeline", "Day"), question.day.isoformat() if question.day else ""),
        "hour": (pgettext("timeline", "Hour"), "" if question.hour is None else hour_in_words(question.hour)),
        "reason": (
            pgettext("timeline", "Reason"),
            str(REASONS[ReasonCode(question.reason)]) if question.reason else "",
        ),
        "ended": (pgettext("timeline", "Ended"), _ended(question)),
        "payload": (pgettext("timeline", "Payload"), str(question.payload or "")),
        "q": (pgettext("timeline", "Search"), question.q),
    }
    default = Question()
    plain = {"after": None, "before": None}
    return [
        FilterChip(title, value, question.where(**{field: getattr(default, field)}, **plain))
        for field, (title, value) in said.items()
        if value
    ]


def _ended(question: Question) -> str:
    said = {"": "", "day": _("in the last 24 hours"), "week": _("in the last 7 days")}
    return said[question.ended]


def _states() -> dict[str, str]:
    return {
        OPEN_ONES: pgettext("timeline", "open"),
        OVERDUE: pgettext("timeline", "overdue"),
        **state_titles(),
        ENDED: pgettext("timeline", "ended"),
        ALL: pgettext("timeline", "all"),
    }


def _choices(values: list[str], chosen: str, said: Callable[[str], str] = str) -> list[Choice]:
    unknown = [chosen] if chosen and chosen not in values else []
    return [Choice(value, said(value), value == chosen) for value in [*values, *unknown]]
