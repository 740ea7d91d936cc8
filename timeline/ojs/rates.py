"""Rates of jobs: so many of a queue, or of a key, are fetched within a time, and no more."""  # of rates

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db.models import Q

from timeline.definition.names import key_with
from timeline.features.rates.declaration import MAX_RATE, Allowance
from timeline.features.rates.store import Asked, Ledger, admit_here, ledgers
from timeline.ojs.errors import Invalid
from timeline.ojs.values import an_object, duration, given, milliseconds, text, whole

if TYPE_CHECKING:
    from timeline.models import ScheduledTask
    from timeline.models.task import ScheduledTaskQuerySet

RATE: Final = "rate"  # In a payload: what a job shares its rate with, and how many within how many milliseconds.
SHORTEST: Final = timedelta(seconds=1)
LONGEST: Final = timedelta(days=1)
MAX_KEY: Final = 255
_KEY: Final = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._:-]*", re.ASCII)


def read_rate(said: object, queue: str, at: str) -> dict[str, Any]:
    """
    What a payload keeps of ``rate_limit``; nothing, if it says no rate. ``at`` is how errors name it.

    Raises:
        Invalid: naming the field that is wrong.
    """
    if said is None:
        return {}
    found = {name: value for name, value in an_object(at, said).items() if value is not None}
    key = text(f"{at}.key", found["key"], MAX_KEY) if "key" in found else ""
    if key and not _KEY.fullmatch(key):
        raise Invalid(f"{at}.key", "has to be letters, digits, and . _ : - after the first.", expected=_KEY.pattern)
    if "max_per_second" in found and "rate" in found:
        raise Invalid(f"{at}.rate", "and max_per_second are two rates. Leave out one of them.")
    if "max_per_second" in found:
        most, period = whole(f"{at}.max_per_second", found["max_per_second"], 1, MAX_RATE), SHORTEST
    elif "rate" in found:
        most, period = _window(an_object(f"{at}.rate", found["rate"]), f"{at}.rate")
    else:
        return {}
    length = milliseconds(period)
    shared = f"ojs:{length}:key:{key}" if key else f"ojs:{length}:queue:{queue}"
    return {RATE: {"key": key_with(shared, None, by=""), "most": most, "period": length}}


def _window(rate: dict[str, Any], at: str) -> tuple[int, timedelta]:
    named = {f"{at}.{name}": value for name, value in rate.items()}
    most = whole(f"{at}.limit", given(named, f"{at}.limit"), 1, MAX_RATE)
    period = duration(f"{at}.period", given(named, f"{at}.period"))
    if not SHORTEST <= period <= LONGEST:
        raise Invalid(f"{at}.period", "has to be from PT1S to P1D.", expected="PT1S..P1D")
    return most, period


@dataclass(slots=True)
class Room:
    """What of the rates is left while one fetch looks for jobs: as their rows say, without a lock."""

    now: datetime
    using: str
    _ledgers: dict[str, Ledger] = field(default_factory=dict)
    _full: set[str] = field(default_factory=set)

    def passing(self, rows: ScheduledTaskQuerySet) -> ScheduledTaskQuerySet:
        """Without the jobs of rates that were found used up."""
        if not self._full:
            return rows
        others = ~Q(**{f"payload__{RATE}__key__in": sorted(self._full)})
        return rows.filter(Q(**{f"payload__{RATE}__isnull": True}) | others)

    def without(self, tasks: Collection[ScheduledTask]) -> set[UUID]:
        """Those for which there is no room. Whoever has to wait holds up the others of its key, so that none overtakes it."""
        rated = [(task.pk, task.payload[RATE]) for task in tasks if RATE in task.payload]
        unknown = {rate["key"] for _pk, rate in rated} - self._ledgers.keys()
        if unknown:
            self._ledgers |= ledgers(unknown, now=self.now, using=self.using)
        refused = set()
        for pk, rate in rated:
            ledger = self._ledgers[rate["key"]]
            if rate["key"] in self._full or not ledger.admit(Asked(waited=True), _allowance(rate)):
                self._full.add(rate["key"])
                refused.add(pk)
        return refused


def counted(tasks: Sequence[ScheduledTask], *, now: datetime, using: str) -> list[ScheduledTask]:
    """
    Those that may begin now, counted in the transaction that gives them out. The last thing in it that waits for others: for
    whoever counts the same rates, until they commit.
    """
    several: dict[str, list[tuple[Allowance, Asked]]] = defaultdict(list)
    asked = {task.pk: Asked(waited=True) for task in tasks if RATE in task.payload}
    for task in tasks:
        if task.pk in asked:
            rate = task.payload[RATE]
            several[rate["key"]].append((_allowance(rate), asked[task.pk]))
    if several:
        admit_here(several, now=now, using=using)
    return [task for task in tasks if task.pk not in asked or asked[task.pk].due_at is None]


def _allowance(rate: dict[str, Any]) -> Allowance:
    return Allowance(rate["most"], timedelta(milliseconds=rate["period"]))
