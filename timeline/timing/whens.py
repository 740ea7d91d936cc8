"""``When``: a time relative to an anchor, and the three words that make one."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from functools import cached_property
from typing import Final, Protocol

from django.utils.translation import gettext_lazy as _

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
}


class NamesTask(Protocol):
    """Anything that stands for a task of the same timeline: what ``@task`` makes of a method."""

    @property
    def name(self) -> str:
        """Name of the method."""


@dataclass(frozen=True)
class When:
    """
    A time relative to an anchor. Made by ``after``, ``before`` and ``at``.

    Args:
        verb: ``after``, ``before`` or ``at``.
        anchor: ``start`` (of the run), ``field:<name>`` (of the entity) or ``end:<name>`` (of another task).
        offset: Signed distance from the anchor.
        predecessor: What stands for the other task, where the anchor is its end.
        problems: What is wrong with it, as (problem, remedy); the timeline's class reports them with its name.
    """

    verb: str
    anchor: str
    offset: Offset
    predecessor: NamesTask | None = field(default=None, compare=False, repr=False)
    problems: tuple[Problem, ...] = ()

    @cached_property
    def field_name(self) -> str:
        """The entity's field that is the anchor; empty for another anchor."""
        return self.anchor.removeprefix("field:") if self.anchor.startswith("field:") else ""

    @cached_property
    def predecessor_name(self) -> str:
        """The task whose end is the anchor; empty for another anchor."""
        return self.anchor.removeprefix("end:") if self.anchor.startswith("end:") else ""

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
        kind = self.anchor.partition(":")[0], self.verb if self.offset else "at"
        return str(_SAID[kind]) % {
            "offset": self.offset.describe(),
            "field": self.field_name,
            "task": self.predecessor_name,
        }


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
) -> When:
    """
    So long after the anchor.

    Args:
        anchor: A task of the same timeline (its end), the name of a field of the entity, or nothing: the run's start.
        delta: Exact duration; may stand alone as the first argument.
        years, months, weeks, days: Whole calendar units.
        hours, minutes, seconds: Exact units.
    """
    if isinstance(anchor, timedelta):
        delta += anchor
        anchor = None
    offset, problems = read_offset(years, months, weeks, days, delta, hours, minutes, seconds)
    if anchor is None:
        return When("after", RUN_START, offset, None, problems)
    if isinstance(anchor, str):
        return When("after", f"field:{anchor}", offset, None, (*problems, *_field_problems(anchor)))
    if not isinstance(getattr(anchor, "name", None), str):
        problem = (f"after({anchor!r}) names no anchor.", "Give a task of this timeline or the name of a field.")
        return When("after", RUN_START, offset, None, (*problems, problem))
    return When("after", f"end:{anchor.name}", offset, anchor, problems)


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


def _field_problems(name: str) -> tuple[Problem, ...]:
    if name.isidentifier():
        return ()
    return ((f"{name!r} is not the name of a field.", "Name a date or datetime field of the entity itself."),)
