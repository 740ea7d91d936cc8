"""The rules of a timeline about its runs, except its starts and exits, in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from timeline.definition import Definition, Recurring
from timeline.timing.offsets import Offset

A_DAY: Final = timedelta(days=1)

_OVERLAP: Final[Mapping[str, Promise]] = {
    "skip": gettext_lazy("a run is skipped while an earlier one is open"),
    "queue": gettext_lazy("a run waits while an earlier one is open"),
    "allow": gettext_lazy("runs may overlap"),
}
_CATCH_UP: Final[Mapping[str, Promise]] = {
    "latest": gettext_lazy("of the times that were missed, the last is made up for, up to %(within)s later"),
    "none": gettext_lazy("times that were missed are not made up for"),
    "all": gettext_lazy("all times that were missed are made up for, up to %(within)s later"),
}
_PERIOD: Final[Mapping[str, Promise]] = {
    "day": gettext_lazy("one run a day"),
    "week": gettext_lazy("one run a week"),
    "month": gettext_lazy("one run a month"),
}


def rules_of(definition: Definition) -> Iterator[str]:
    """Say how many runs there may be, and what happens to runs that come too late or too early."""
    if definition.once:
        yield _("one run ever of the same key")
    if definition.key:
        yield _("a run of its own for each %(fields)s of the event") % {"fields": ", ".join(definition.key)}
    if definition.again:
        yield _("events that come while a run is open begin one more when it has finished")
    if definition.recurring is not None:
        yield from _rules_of_clock(definition.recurring)


def _rules_of_clock(recurring: Recurring) -> Iterator[str]:
    if recurring.once_per:
        yield str(_PERIOD[recurring.once_per])
    yield str(_OVERLAP[recurring.overlap])
    within = Offset(0, recurring.within.days, recurring.within % A_DAY)
    yield str(_CATCH_UP[recurring.catch_up]) % {"within": within.describe()}
