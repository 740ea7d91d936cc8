"""What ``self.sleep(…)`` is given, checked: how long, or until when, and under what name it is recorded."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils.translation import gettext_lazy as _

from timeline.exceptions import InvalidInput
from timeline.features.waits.declaration import LONGEST, MAX_NAME
from timeline.payloads import check_text
from timeline.timing.offsets import Offset, check_time, read_offset

_MONTH: Final = timedelta(days=31)


@dataclass(frozen=True, slots=True)
class Sleep:
    """For how long, or until when; without a ``name``, its place among the sleeps of the handler is its name."""

    offset: Offset
    until: datetime | None
    name: str

    @property
    def given(self) -> dict[str, Any]:
        """What must be the same if the code changes. The moment may come from the entity, which changes by itself."""
        if self.until is not None:
            return {"until": True}
        return {"months": self.offset.months, "days": self.offset.days, "seconds": self.offset.exact.total_seconds()}


class Asleep:
    """A unit test, in which nothing sleeps: in an ``async def`` this is awaited."""

    def __await__(self) -> Any:
        """Come back at once."""
        yield from ()


def sleep_of(
    delta: timedelta,
    /,
    *,
    years: int,
    months: int,
    weeks: int,
    days: int,
    hours: float,
    minutes: float,
    seconds: float,
    until: datetime | None,
    name: str,
) -> Sleep:
    """Check how long a handler sleeps: ``InvalidInput``, naming ``sleep``, ``until`` or ``name``."""
    check_text("name", name, MAX_NAME)
    offset, problems = read_offset(years, months, weeks, days, delta, hours, minutes, seconds)
    if until is not None:
        if offset or problems:
            problem = _("has a length, and until=.")
            raise InvalidInput("sleep", problem, _("Give one of them: days=2, or until=moment."))
        return Sleep(offset, check_time("until", until), str(name))
    if problems and "negative" not in problems[0][0]:
        raise InvalidInput("sleep", *problems[0])
    remedy = _("Say how long, up to %(days)d days: self.sleep(days=2); or until=moment.")
    if not problems and not offset:
        raise InvalidInput("sleep", _("is for no time, and until= is missing or None."), remedy, days=LONGEST.days)
    if problems or _is_too_long(offset):
        raise InvalidInput("sleep", _("is for a negative time, or too long."), remedy, days=LONGEST.days)
    return Sleep(offset, None, str(name))


def _is_too_long(offset: Offset) -> bool:
    try:
        return offset.months * _MONTH + timedelta(days=offset.days) + offset.exact > LONGEST
    except OverflowError:
        return True
