"""``When``: a time relative to an anchor, and the words that make one."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from functools import cached_property
from typing import Final, Protocol

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from timeline.exceptions import DateOutOfRange
from timeline.timing.offsets import Offset, Problem, read_offset

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
}
_OF_TASKS: Final = ("end", "ended", "each")


class NamesTask(Protocol):
    """Anything that stands for a task of the same timeline: what ``@task`` makes of a method."""

    @property
    def name(self) -> str:
        """Name of the method."""


@dataclass(frozen=True)
class When:
    """
    A time relative to an anchor. Made by ``after``, ``before``, ``at``, ``each_of`` and ``wait_for``.

    Args:
        verb: ``after``, ``before`` or ``at``.
        anchor: ``start`` (of the run), ``field:<name>`` (of the entity), ``end:<name>`` (another task has completed),
            ``ended:<name>`` (it has ended, however) or ``each:<name>`` (it has completed, and fanned out).
        offset: Signed distance from the anchor.
        predecessor: What stands for the other task, where the anchor is its end.
        problems: What is wrong with it, as (problem, remedy); the timeline's class reports them with its name.
        awaits: Events, each of which makes it due at once.
        awaits_key: Of these events; empty: whichever they have.
    """

    verb: str
    anchor: str
    offset: Offset
    predecessor: NamesTask | None = field(default=None, compare=False, repr=False)
    problems: tuple[Problem, ...] = ()
    awaits: tuple[str, ...] = ()
    awaits_key: str = ""

    @cached_property
    def field_name(self) -> str:
        """The entity's field that is the anchor; empty for another anchor."""
        return self.anchor.removeprefix("field:") if self.anchor.startswith("field:") else ""

    @cached_property
    def predecessor_name(self) -> str:
        """The task whose end is the anchor; empty for another anchor."""
        kind, _colon, name = self.anchor.partition(":")
        return name if kind in _OF_TASKS else ""

    @property
    def is_for_each(self) -> bool:
        """Whether there is a row for each occurrence that the other task fans out."""
        return self.anchor.startswith("each:")

    @property
    def takes_any_end(self) -> bool:
        """Whether it counts from the other task's end, whether or not that has completed."""
        return self.anchor.startswith("ended:")

    def resolve(self, anchor_value: datetime, zone: tzinfo) -> datetime:
        """
        Compute the time from the anchor's value; see ``Offset.apply``.

        Raises:
            DateOutOfRange: naming the field, or the other anchor.
        """
        try:
            return self.offset.apply(anchor_value, zone)
        except DateOutOfRange as error:
            raise DateOutOfRange(self.field_name or self.anchor, error.value) from None

    def describe(self) -> str:
        """Say it in words, in the present language: ``5 days before trial_ends_at``."""
        kind = self.anchor.partition(":")[0]
        if kind in ("end", "ended") and _is_for_each(self.predecessor):
            kind = f"{kind} of all"
        said = str(_SAID[kind, self.verb if self.offset else "at"]) % {
            "offset": self.offset.describe(),
            "field": self.field_name,
            "task": self.predecessor_name,
        }
        if not self.awaits:
            return said
        events = str(pgettext_lazy("timeline", " or ")).join(self.awaits)
        return str(_("when %(events)s comes, or %(deadline)s")) % {"events": events, "deadline": said}


def after(
    anchor: str | NamesTask | timedelta | None = None,
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
    ended: bool = False,
) -> When:
    """
    So long after the anchor.

    Args:
        anchor: A task of the same timeline (its end), the name of a field of the entity, or nothing: the run's start. Of a task
            declared with ``each_of``: the end of the last of its occurrences.
        delta: Exact duration; may stand alone as the first argument.
        years, months, weeks, days: Whole calendar units.
        hours, minutes, seconds: Exact units.
        ended: Whether the task may have ended however: completed, discarded or cancelled. False: it has completed.
    """
    if isinstance(anchor, timedelta):
        delta += anchor
        anchor = None
    offset, problems = read_offset(years, months, weeks, days, delta, hours, minutes, seconds)
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


def each_of(task: NamesTask, /) -> When:
    """
    Once for each occurrence that a task of the same timeline fans out: ``self.fan_out(…)`` in its handler, at once when that
    completes.

    Args:
        task: The one that fans out.
    """
    if not _names_task(task):
        problem = (f"each_of({task!r}) names no task.", "Give the task of this timeline that fans out.")
        return When("after", RUN_START, Offset(), None, (problem,))
    return When("after", f"each:{task.name}", Offset(), task)


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
    """
    So long before a date that the entity holds.

    Args:
        anchor: Name of a date or datetime field of the entity.
        delta: Exact duration.
        years, months, weeks, days: Whole calendar units.
        hours, minutes, seconds: Exact units.
    """
    offset, problems = read_offset(years, months, weeks, days, delta, hours, minutes, seconds)
    if not offset:
        problems = (*problems, ("before() without a distance.", "Give one, e.g. days=5, or use at()."))
    if not isinstance(anchor, str):
        problem = ("before() counts back from a field of the entity only.", 'Name one: before("ends_at", days=5).')
        return When("before", RUN_START, -offset, None, (*problems, problem))
    return When("before", f"field:{anchor}", -offset, None, (*problems, *_field_problems(anchor)))


def at(anchor: str, /) -> When:
    """Exactly at a date that the entity holds; ``anchor`` is the name of its date or datetime field."""
    if not isinstance(anchor, str):
        problem = ("at() takes the name of a field of the entity.", 'Name one: at("ends_at").')
        return When("at", RUN_START, Offset(), None, (problem,))
    return When("at", f"field:{anchor}", Offset(), None, _field_problems(anchor))


def _names_task(value: object) -> bool:
    return isinstance(getattr(value, "name", None), str)


def _is_for_each(task: object) -> bool:
    """Whether a task has a row for each of its occurrences."""
    return bool(getattr(getattr(task, "when", None), "is_for_each", False))


def _field_problems(name: str) -> tuple[Problem, ...]:
    if name.isidentifier():
        return ()
    return ((f"{name!r} is not the name of a field.", "Name a date or datetime field of the entity itself."),)
