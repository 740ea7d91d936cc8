"""Slots of a cron expression. Needs the extra ``cron``; the rule for clock changes is our own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import product

from timeline.timing.offsets import Problem
from timeline.timing.slots import Slots

try:
    from cronsim import CronSim, CronSimError
except ImportError:  # pragma: no cover (our tests have it)
    CronSim = None  # type: ignore[assignment, misc]


@dataclass(frozen=True, slots=True)
class DaysOfCron:
    """The days of an expression."""

    expression: str

    def first(self, day: date) -> date:
        """The first such day from this one on; for a leap day, it may be years later."""
        before = datetime.combine(day, time.min, tzinfo=UTC) - timedelta(seconds=1)
        try:
            return next(CronSim(self.expression, before)).date()
        except StopIteration:
            raise OverflowError(self.expression) from None


def slots_of(expression: object) -> tuple[Slots | None, tuple[Problem, ...]]:
    """Read an expression of five fields, and list what is wrong with it."""
    if CronSim is None:
        problem = "has cron(…), for which a package is missing."
        return None, (
            (problem, 'Install it: pip install "django-entity-timeline[cron]"; or use daily(…) and its kin.'),
        )
    if not isinstance(expression, str) or len(expression.split()) != 5:
        remedy = 'Give minute, hour, day of the month, month and day of the week: cron("0 2 * * mon").'
        return None, ((f"has cron({expression!r}).", remedy),)
    try:
        known = CronSim(expression, datetime(2024, 1, 1, tzinfo=UTC))
        next(known)
    except (CronSimError, StopIteration) as error:
        why = "comes never" if isinstance(error, StopIteration) or _is_known(expression) else str(error).lower()
        return None, ((f"has cron({expression!r}): {why}.", "See the crontab of your system for what it takes."),)
    times = tuple(time(hour, minute) for hour, minute in product(sorted(known.hours), sorted(known.minutes)))
    any_hour = expression.split()[1].startswith("*")
    return Slots(DaysOfCron(" ".join(expression.split())), times, any_hour), ()


def _is_known(expression: str) -> bool:
    """Whether each field is valid by itself, and only the day never comes."""
    fields = expression.split()
    try:
        for position, field in enumerate(fields):
            CronSim(
                " ".join(field if place == position else "*" for place in range(5)), datetime(2024, 1, 1, tzinfo=UTC)
            )
    except CronSimError:
        return False
    return True
