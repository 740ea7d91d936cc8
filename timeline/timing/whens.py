"""``When``: a time relative to an anchor, and the functions that make one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from functools import cached_property
from typing import Any, Final, Protocol

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from timeline.exceptions import DateOutOfRange
from timeline.timing.keywords import known_keywords
from timeline.timing.offsets import Offset, Problem, read_offset
from timeline.timing.repeats import LONGEST_SERIES, Repeat, read_repeat
from timeline.timing.states import (
    OF_STATE,
    Backoff,
    anchor_of,
    backoff_problems,
    names_states,
    state_problems,
    states_in,
    texts_among,
    told_states,
)

RUN_START: Final = "start"  # The anchor of a time that counts from the run's start.

_SAID: Final = {
    ("start", "at"): _("at the start of the run"),
    ("start", "after"): _("%(offset)s after the start of the run"),
    ("start", "before"): _("%(offset)s before the start of the run"),
    ("field", "at"): _("at %(field)s"),
    ("field", "after"): _("%(offset)s after %(field)s"),
    ("field", "before"): _("%(offset)s before %(field)s"),
    ("end", "at"): _("when %(task)s completes"),
    ("end", "after"): _("%(offset)s after %(task)s completes"),
    ("end of all", "at"): _("when each %(task)s has completed"),
    ("end of all", "after"): _("%(offset)s after each %(task)s has completed"),
    ("ended", "at"): _("when %(task)s has ended"),
    ("ended", "after"): _("%(offset)s after %(task)s has ended"),
    ("ended of all", "at"): _("when each %(task)s has ended"),
    ("ended of all", "after"): _("%(offset)s after each %(task)s has ended"),
    ("each", "at"): _("for each that %(task)s fans out"),
    ("end of series", "at"): _("when the last %(task)s has completed"),
    ("end of series", "after"): _("%(offset)s after the last %(task)s has completed"),
    ("ended of series", "at"): _("when the last %(task)s has ended"),
    ("ended of series", "after"): _("%(offset)s after the last %(task)s has ended"),
    ("state", "at"): _("when %(states)s is entered"),
    ("state", "after"): _("%(offset)s after %(states)s is entered"),
}
_REMEDIES: Final = {"has a negative distance.": "Give a positive interval: every(days=7)."}
_OF_TASKS: Final = ("end", "ended", "each")


class NamesTask(Protocol):
    """Anything that stands for a task of the same timeline: the result of ``@task``."""

    @property
    def name(self) -> str:
        """Name of the method."""


@dataclass(frozen=True)
class Approval:
    """The question that a person has to decide, ``refund``. ``by``: permission of people who may, ``shop.approve_refund``."""

    name: str
    by: str

    @property
    def approved(self) -> str:
        """Name of the event for yes."""
        return f"{self.name}.approved"

    @property
    def rejected(self) -> str:
        """Name of the event for no."""
        return f"{self.name}.rejected"


@dataclass(frozen=True)
class When:
    """
    A time relative to an anchor. Made by ``after``, ``before``, ``at``, ``each_of``, ``wait_for``, ``approval``, ``every``.

    Args:
        anchor: ``start`` of the run, ``field:<name>`` of the entity, ``state:<names>`` of a machine (entered); of another task,
            ``end:`` (completed), ``ended:`` (in any way) or ``each:`` (completed, and fanned out).
        problems: What is wrong with it, as (problem, remedy).
        awaits: Events, each of which makes the task due at once; with ``awaits_key``, if any.
        awaits_of: The entity whose events count: foreign keys that lead there, or a function of the entity.
        approval: Who may decide by these events; None: anybody who emits them.
        during: States of a machine in which there is a row; none: it is bound to no state.
        tells: For a timer: the event that comes then; empty: a handler is entered.
    """

    verb: str
    anchor: str
    offset: Offset
    predecessor: NamesTask | None = field(default=None, compare=False, repr=False)
    problems: tuple[Problem, ...] = ()
    awaits: tuple[str, ...] = ()
    awaits_key: str = ""
    awaits_of: str | Callable[[Any], Any] | None = None
    approval: Approval | None = None
    repeats: Repeat | None = None
    during: tuple[str, ...] = ()
    backoff: Backoff | None = None
    tells: str = ""

    @cached_property
    def field_name(self) -> str:
        """The entity's field that is the anchor; empty for another anchor."""
        return self.anchor.removeprefix("field:") if self.anchor.startswith("field:") else ""

    @cached_property
    def predecessor_name(self) -> str:
        """The task whose end is the anchor; empty for another anchor."""
        kind, _colon, name = self.anchor.partition(":")
        return name if kind in _OF_TASKS else ""

    @cached_property
    def states(self) -> tuple[str, ...]:
        """The states whose beginning is the anchor; none for another anchor."""
        return states_in(self.anchor)

    def anchor_in(self, state: str) -> str:
        """The anchor of the row while its run is in this state: if there are several states, this one."""
        return f"{OF_STATE}{state}" if self.states else self.anchor

    @cached_property
    def is_for_each(self) -> bool:
        """Whether there is a row for each occurrence that the other task fans out."""
        return self.anchor.startswith("each:")

    @cached_property
    def takes_any_end(self) -> bool:
        """Whether it counts from the other task's end even if that task has not completed."""
        return self.anchor.startswith("ended:")

    def resolve(self, anchor_value: datetime, zone: tzinfo) -> datetime:
        """The time from the anchor's value; see ``Offset.apply``. ``DateOutOfRange`` names the anchor."""
        try:
            return self.offset.apply(anchor_value, zone)
        except DateOutOfRange as error:
            raise DateOutOfRange(self.field_name or self.anchor, error.value) from None

    def describe(self) -> str:
        """Say it in words, in the present language: ``5 days before trial_ends_at``."""
        said = self._describe()
        return str(_("timer of %(event)s: %(when)s")) % {"event": self.tells, "when": said} if self.tells else said

    def _describe(self) -> str:
        kind = self.anchor.partition(":")[0]
        if kind in ("end", "ended") and _is_for_each(self.predecessor):
            kind = f"{kind} of all"
        elif kind in ("end", "ended") and _is_repeated(self.predecessor):
            kind = f"{kind} of series"
        said = str(_SAID[kind, self.verb if self.offset else "at"]) % {
            "offset": self.offset.describe(),
            "field": self.field_name,
            "task": self.predecessor_name,
            "states": told_states(self.states),
        }
        if self.backoff:
            return self.backoff.describe(said)
        if self.during and not self.states:
            return str(_("%(when)s, while it is in %(states)s")) % {"when": said, "states": told_states(self.during)}
        if self.repeats:
            return str(_("%(every)s, first %(when)s")) % {"every": self.repeats.describe(), "when": said}
        if not self.awaits:
            return said
        events = str(pgettext_lazy("timeline", " or ")).join(self.awaits)
        if self.awaits_of is not None:
            known = {"events": events, "whose": self.whose, "deadline": said}
            return str(_("when %(events)s of its %(whose)s comes, or %(deadline)s")) % known
        return str(_("when %(events)s comes, or %(deadline)s")) % {"events": events, "deadline": said}

    @property
    def whose(self) -> str:
        """The name in code of the entity whose events it waits for; empty: the entity itself."""
        if self.awaits_of is None or isinstance(self.awaits_of, str):
            return self.awaits_of or ""
        return getattr(self.awaits_of, "__name__", type(self.awaits_of).__name__)


@known_keywords
def after(
    anchor: str | NamesTask | timedelta | None = None,
    /,
    *more: str | timedelta,
    years: int = 0,
    months: int = 0,
    weeks: int = 0,
    days: int = 0,
    hours: float = 0,
    minutes: float = 0,
    seconds: float = 0,
    ended: bool = False,
    backoff: Any = None,
    spent: str = "",
) -> When:
    """
    So long after the anchor.

    Args:
        anchor: A task of the same timeline (its end), the name of a field of the entity, or nothing: the run's start. For a
            task declared with ``each_of``: the end of its last occurrence. In a machine, a member of the enumeration of its
            states: from when the state is entered, as with ``on``.
        more: An exact duration, which may stand alone as the first argument; or further states.
        years, months, weeks, days: Whole calendar units.
        hours, minutes, seconds: Exact units.
        ended: Whether any end of the task counts: completed, discarded or cancelled. False: it must have completed.
        backoff, spent: For a timer of a machine; see ``on``.
    """
    if isinstance(anchor, int | float):
        anchor, more = None, (anchor, *more)
    durations: list[Any] = [one for one in (anchor, *more) if isinstance(one, timedelta)]
    delta: Any = next((one for one in more if not isinstance(one, str | timedelta)), sum(durations, timedelta(0)))
    anchor = None if isinstance(anchor, timedelta) else anchor
    offset, problems = read_offset(years, months, weeks, days, delta, hours, minutes, seconds)
    states = (anchor, *(one for one in more if isinstance(one, str)))
    if names_states(anchor, more, backoff):
        wrong = (*state_problems(states), *backoff_problems(backoff, spent, offset))
        return when_in(states, offset, (*problems, *wrong), backoff, spent)
    problems = (*problems, *backoff_problems(backoff, spent, offset), *_further_problems(states[1:]))
    if ended is not False and (anchor is None or isinstance(anchor, str) or type(ended) is not bool):
        problem = (
            f"has after(…, ended={ended!r}).",
            "ended=True goes with a task that it follows: after(clean, ended=True).",
        )
        problems = (*problems, problem)
    if anchor is None:
        return When("after", RUN_START, offset, None, problems)
    if isinstance(anchor, str):
        return When("after", f"field:{anchor}", offset, None, (*problems, *_field_problems(anchor)))
    if not _names_task(anchor):
        problem = (f"after({anchor!r}) names no anchor.", "Give a task of this timeline or the name of a field.")
        return When("after", RUN_START, offset, None, (*problems, problem))
    return When("after", f"{'ended' if ended else 'end'}:{anchor.name}", offset, anchor, problems)


def when_in(states: Iterable[Any], offset: Offset, problems: tuple[Problem, ...], backoff: Any, spent: str) -> When:
    """Make a time that counts from when one of some states is entered."""
    named = texts_among(states)
    known = None if backoff is None else Backoff(backoff, spent)
    return When("after", anchor_of(named), offset, None, problems, during=named, backoff=known)


@known_keywords
def each_of(task: NamesTask, /) -> When:
    """
    Once for each occurrence that a task of the same timeline fans out (``self.fan_out(…)`` in its handler), at once when that
    task completes.
    """
    if not _names_task(task):
        problem = (f"each_of({task!r}) names no task.", "Give the task of this timeline that fans out.")
        return When("after", RUN_START, Offset(), None, (problem,))
    return When("after", f"each:{task.name}", Offset(), task)


@known_keywords
def every(
    delta: timedelta = timedelta(0),
    /,
    *,
    years: int = 0,
    months: int = 0,
    weeks: int = 0,
    days: int = 0,
    hours: float = 0,
    minutes: float = 0,
    seconds: float = 0,
    first: timedelta | None = None,
    most: int | None = None,
    until: Any = None,
) -> When:
    """
    Again and again, one row at a time, counted from the run's start: the next row is made when the one before has ended.

    All times count from the first, so they do not drift; times that have passed when a row ends are skipped.

    Args:
        delta, years, …: The interval, in the units of ``after``.
        first: How long after the run's start the first row is due; left out: one interval.
        most: At most so many rows, 1,000 or fewer. Left out: until the run ends, or ``until`` is true.
        until: Checked when a row is about to run: if true, this row is cancelled (``until``), and the series ends. A
            function of the entity, or a ``Q`` of its model.
    """
    interval, problems = read_offset(years, months, weeks, days, delta, hours, minutes, seconds)
    problems = tuple((problem, _REMEDIES.get(problem, remedy)) for problem, remedy in problems)
    repeats, wrong = read_repeat(interval, most, until) if not problems else (None, ())
    if first is not None and not (isinstance(first, timedelta) and timedelta(0) <= first <= LONGEST_SERIES):
        wrong = (*wrong, (f"begins after {first!a:.60}.", "Give first=timedelta(…), from the run's start on."))
    begins = Offset(exact=first) if isinstance(first, timedelta) else interval
    return When("after", RUN_START, begins, None, (*problems, *wrong), repeats=repeats)


@known_keywords
def before(
    anchor: str,
    delta: timedelta = timedelta(0),
    /,
    *,
    years: int = 0,
    months: int = 0,
    weeks: int = 0,
    days: int = 0,
    hours: float = 0,
    minutes: float = 0,
    seconds: float = 0,
) -> When:
    """So long before a date of the entity: ``anchor`` is the name of a date or datetime field. Units are those of ``after``."""
    offset, problems = read_offset(years, months, weeks, days, delta, hours, minutes, seconds)
    if not offset:
        problems = (*problems, ("before() without a distance.", "Give one, e.g. days=5, or use at()."))
    if not isinstance(anchor, str):
        problem = ("before() counts back from a field of the entity only.", 'Name one: before("ends_at", days=5).')
        return When("before", RUN_START, -offset, None, (*problems, problem))
    return When("before", f"field:{anchor}", -offset, None, (*problems, *_field_problems(anchor)))


@known_keywords
def at(anchor: str, /) -> When:
    """Exactly at a date of the entity; ``anchor`` is the name of its date or datetime field."""
    if not isinstance(anchor, str):
        problem = ("at() takes the name of a field of the entity.", 'Name one: at("ends_at").')
        return When("at", RUN_START, Offset(), None, (problem,))
    return When("at", f"field:{anchor}", Offset(), None, _field_problems(anchor))


def _further_problems(further: Iterable[object]) -> Iterator[Problem]:
    for one in further:
        yield (
            f"counts from {one!a:.60} as well.",
            "Name one anchor; of a machine, states only: after(S.A, S.B, hours=1).",
        )


def _names_task(value: object) -> bool:
    return isinstance(getattr(value, "name", None), str)


def _is_for_each(task: object) -> bool:
    """Whether a task has a row for each of its occurrences."""
    return bool(getattr(getattr(task, "when", None), "is_for_each", False))


def _is_repeated(task: object) -> bool:
    return getattr(getattr(task, "when", None), "repeats", None) is not None


def _field_problems(name: str) -> tuple[Problem, ...]:
    if name.isidentifier():
        return ()
    return ((f"{name!r} is not the name of a field.", "Name a date or datetime field of the entity itself."),)


@known_keywords
def on(
    *states: str,
    years: int = 0,
    months: int = 0,
    weeks: int = 0,
    days: int = 0,
    hours: float = 0,
    minutes: float = 0,
    seconds: float = 0,
    backoff: Any = None,
    spent: str = "",
) -> When:
    """
    In a state of a machine: the row is there exactly while the run is in that state, and is due at the entry, or later.

    Each entry into a state makes a new row. When the state is left, the row is cancelled (``state``) unless it has ended.

    Args:
        states: One state, or several.
        years, …: How long after the entry, in the units of ``after``.
        backoff: For a timer: a ``Retry``, instead of a distance. The timer comes later with each try.
        spent: The event that comes instead, at once, when ``max_attempts`` tries have been used.
    """
    offset, problems = read_offset(years, months, weeks, days, timedelta(0), hours, minutes, seconds)
    wrong = (*state_problems(states), *backoff_problems(backoff, spent, offset))
    return when_in(states, offset, (*problems, *wrong), backoff, spent)
