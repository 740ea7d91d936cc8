"""Rates as rows: which attempts may begin now, when the others look again, and keys that are braked."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import randrange
from time import sleep
from typing import Any, Final

from django.db import connections

from timeline.clocks import is_told, story_now
from timeline.definition.names import key_with, start_of_keys
from timeline.dialects import Among
from timeline.features.rates.declaration import MAX_RATE, PERIODS, Allowance
from timeline.models import RateKey
from timeline.store.transactions import atomic

logger = logging.getLogger("timeline")

ROUNDS: Final = 40  # How often keys are tried that others have locked,
PAUSE: Final = 0.02  # with so many seconds between.
BUSY_FOR: Final = timedelta(seconds=1)  # When one looks again whose key was locked all the time.
# What waits is spread over so many periods, but over a day at most, or a period: what is cancelled meanwhile holds up others no
# longer. The longer, the fewer looks in vain.
AHEAD: Final = 12
AHEAD_AT_LEAST: Final = timedelta(hours=1)
LAG: Final = timedelta(seconds=2)  # For so long a free start waits for one that has waited before.
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_KEPT: Final = timedelta(hours=1)
_BRAKED: Final = timedelta(days=31)  # No handler can ask for more; what says so was written when a clock was wrong.
_COLUMNS: Final = ("starts", "tail", "braked_until", "kept_until")
_VALUES: Final = "(%s, %s, %s, %s, %s)"
_INSERT: Final = """
INSERT INTO timeline_ratekey (key, starts, tail, braked_until, kept_until)
VALUES {}
ON CONFLICT (key) DO NOTHING
RETURNING key
"""


@dataclass(slots=True)
class Asked:
    """
    One attempt that asks to begin.

    Args:
        waited: Whether it has been tried or put off before.
        counted: When it was counted, in microseconds, if it was, and its handler has not been entered since; 0: not yet.
    """

    waited: bool
    counted: int = 0
    due_at: datetime | None = None  # Set if it must not begin now: when it looks again,
    braked_until: datetime | None = None  # and if its key is braked, until when.


@dataclass(slots=True)
class Ledger:
    """A key, as its row says, while the row is locked. Moments are microseconds since 1970."""

    now: int
    starts: list[int]
    tail: int = 0
    braked_until: int = 0

    def admit(self, asked: Asked, allowance: Allowance) -> bool:
        """Count an attempt, if it may begin now; otherwise say when it looks again."""
        period = allowance.period // _MICROSECOND
        known = asked.waited or asked.counted > 0
        if asked.counted in self.starts:
            self.starts.remove(asked.counted)
        # A clock that was set back: what it calls the future has been.
        self.starts = [min(start, self.now) for start in self.starts if start > self.now - period]
        opens = self.starts[-allowance.most] + period if len(self.starts) >= allowance.most else 0
        if self.braked_until <= self.now and not opens and (known or self._has_room(allowance, period)):
            self.starts.append(self.now)
            asked.counted = self.now
            return True
        asked.counted = 0
        asked.braked_until = _moment(self.braked_until) if self.braked_until > self.now else None
        asked.due_at = _moment(self._next(max(self.now + 1, self.braked_until, opens), allowance, period))
        return False

    def _has_room(self, allowance: Allowance, period: int) -> bool:
        """Whether one that has not waited may begin: the last free start is for those that have, unless none of them comes."""
        if self.tail <= self.now or len(self.starts) < allowance.most - 1:
            return True
        free_since = self.starts[-1] + period // allowance.most if self.starts else 0
        return self.now >= free_since + LAG // _MICROSECOND

    def _next(self, first: int, allowance: Allowance, period: int) -> int:
        """When one that waits looks again: two for each start, so that none is left unused if one comes late."""
        day = PERIODS["d"] // _MICROSECOND
        ahead = max(min(AHEAD * period, day), AHEAD_AT_LEAST // _MICROSECOND)
        gap = max(period // (2 * allowance.most), 1)
        at = max(first, self.tail)
        if at > first + ahead + gap:  # Another rate said so, or a clock that was set back.
            at = first
        if at > first + ahead:
            return first + ahead + randrange(ahead)  # noqa: S311 (no secret)
        self.tail = at + gap
        return at


Act = Callable[[str, Ledger], None]


def admit(several: Mapping[str, tuple[Allowance, Sequence[Asked]]], *, now: datetime, using: str) -> Collection[str]:
    """
    Decide for the attempts of each key which may begin, in their order, and count these, committed when this returns. Gives
    the keys that somebody else has locked all the time: nothing was decided for these.

    In no period do more begin than are allowed, whoever asks: a key has one row, which is locked, and the time is read then.
    """

    before = {key: [one.counted for one in asked] for key, (_allowance, asked) in several.items()}

    def afresh(key: str) -> None:
        for one, counted in zip(several[key][1], before[key], strict=True):
            one.counted, one.due_at, one.braked_until = counted, None, None

    def decide(key: str, ledger: Ledger) -> None:
        afresh(key)
        for one in several[key][1]:
            ledger.admit(one, several[key][0])

    busy = several.keys() - _changed(set(several), decide, now=now, using=using)
    for key in busy:
        afresh(key)
    return busy


def ledgers(keys: Collection[str], *, now: datetime, using: str) -> dict[str, Ledger]:
    """Keys as their rows say, read without a lock: to ask beforehand for which it is worth it. One statement."""
    found = RateKey.objects.using(using).filter(Among(sorted(keys)))
    return {key: Ledger(micros(now), []) for key in keys} | {row.key: _ledger(row, now) for row in found}


def admit_here(several: Mapping[str, Sequence[tuple[Allowance, Asked]]], *, now: datetime, using: str) -> None:
    """
    As ``admit``, but within the caller's transaction: what is counted is undone with it, and others who count the same wait
    until it ends. Call it once, as the last thing that the transaction waits for: keys are locked in order, by one
    statement, so nobody waits in a circle. For keys that ``admit`` is not called with.
    """
    new = [RateKey(key=key, kept_until=_kept_until(Ledger(micros(now), []))) for key in sorted(several)]
    table = RateKey.objects.using(using)
    table.bulk_create(new, update_conflicts=True, unique_fields=["key"], update_fields=["kept_until"])  # Locks them.
    rows = list(table.filter(Among(sorted(several))))
    at = now if is_told() else story_now(using)

    def decide(key: str, ledger: Ledger) -> None:
        for allowance, one in several[key]:
            ledger.admit(one, allowance)

    for row in rows:
        _change(row, decide, at)
    table.bulk_create(rows, update_conflicts=True, unique_fields=["key"], update_fields=_COLUMNS)


def slow_down(key: str, *, until: datetime, now: datetime, using: str) -> bool:
    """Let nothing of a key begin until then, or until a later moment that was given before. Whether it could be written."""
    at = micros(until)

    def change(_key: str, ledger: Ledger) -> None:
        ledger.braked_until = max(ledger.braked_until, at)

    return bool(_changed({key}, change, now=now, using=using))


def braked(name: str, value: object, *, has_values: bool, now: datetime, using: str) -> list[str]:
    """Keys of this name that are braked: that of a value; None: those of all values, if the rate has any."""
    rows = RateKey.objects.using(using).filter(braked_until__gt=now)
    if value is not None:
        rows = rows.filter(key=key_with(name, value, by=name))
    elif has_values:
        rows = rows.filter(key__startswith=start_of_keys(name))
    else:
        rows = rows.filter(key=name)
    return list(rows.order_by("key").values_list("key", flat=True))


def lift(keys: Collection[str], *, now: datetime, using: str) -> bool:
    """Let attempts of braked keys begin again. What waits looks again by its rate alone. Whether they could be written."""

    def change(_key: str, ledger: Ledger) -> None:
        if ledger.braked_until > ledger.now:
            ledger.braked_until = ledger.tail = 0

    return len(_changed(set(keys), change, now=now, using=using)) == len(keys)


def _changed(keys: set[str], act: Act, *, now: datetime, using: str) -> set[str]:
    """Change the rows of keys, and try those again for a while that others have locked. Gives the keys that were changed."""
    changed: set[str] = set()
    for number in range(ROUNDS):
        if number > 1:
            sleep(PAUSE)
        changed |= _with_locked(keys - changed, act, now=now, using=using)
        if len(changed) == len(keys):
            break
    return changed


def _with_locked(keys: set[str], act: Act, *, now: datetime, using: str) -> set[str]:
    """
    Lock the rows of keys that nobody else has locked, make those that are not there, change them, and commit.

    Nobody waits for a lock but of a row that somebody has just made or changed. Rows are made in order, and the others changed
    after that, when nobody waits any more: so nobody waits in a circle.
    """
    with atomic(using=using):
        rows = RateKey.objects.using(using).filter(Among(keys)).order_by("key")
        found = list(rows.select_for_update(no_key=True, skip_locked=True))
        at = now if is_told() else story_now(using)
        changed = {row.key for row in found}
        if new := [RateKey(key=key, kept_until=at) for key in sorted(keys - changed)]:
            changed |= _made(new, act, at, using)
            at = now if is_told() else story_now(using)
        for row in found:
            _change(row, act, at)
        if found:
            RateKey.objects.using(using).bulk_create(
                found, update_conflicts=True, unique_fields=["key"], update_fields=_COLUMNS
            )
        return changed


def _change(row: RateKey, act: Act, at: datetime) -> None:
    ledger = _ledger(row, at)
    act(row.key, ledger)
    row.starts = json.dumps(ledger.starts[-MAX_RATE:], separators=(",", ":"))
    row.tail = _moment(ledger.tail) if ledger.tail > ledger.now else None
    row.braked_until = _moment(ledger.braked_until) if ledger.braked_until > ledger.now else None
    row.kept_until = _kept_until(ledger)


def _ledger(row: RateKey, at: datetime) -> Ledger:
    braked_until = min(_micros_or_0(row.braked_until), micros(at + _BRAKED))
    return Ledger(micros(at), _read(row, at), _micros_or_0(row.tail), braked_until)


def _made(rows: Sequence[RateKey], act: Act, at: datetime, using: str) -> set[str]:
    """Insert rows, changed; gives the keys of those that were not there. What was decided for the others is decided anew."""
    adapt = connections[using].ops.adapt_datetimefield_value
    values: list[Any] = []
    for row in rows:
        _change(row, act, at)
        values += [row.key, row.starts, *map(adapt, (row.tail, row.braked_until, row.kept_until))]
    with connections[using].cursor() as cursor:
        cursor.execute(_INSERT.format(", ".join([_VALUES] * len(rows))), values)
        return {key for (key,) in cursor.fetchall()}


def _read(row: RateKey, now: datetime) -> list[int]:
    """When attempts began. If nobody can read it, as many as may be have begun just now: too few is better than too many."""
    try:
        starts = json.loads(row.starts)
        return sorted(int(start) for start in starts)
    except (TypeError, ValueError, OverflowError, RecursionError):
        logger.error("The row of the rate %r cannot be read, and counts as used up: %.200r", row.key, row.starts)
        return [micros(now)] * MAX_RATE


def _kept_until(ledger: Ledger) -> datetime:
    """In whole hours, so that the index seldom changes."""
    latest = max(ledger.now + PERIODS["d"] // _MICROSECOND, ledger.tail, ledger.braked_until)
    hour = _KEPT // _MICROSECOND
    return _moment((latest // hour + 1) * hour)


def forget(*, now: datetime, most: int, using: str) -> int:
    """Delete keys that nobody has used for a day, and that say nothing any more; those that others have locked stay."""
    with atomic(using=using):
        rows = RateKey.objects.using(using).filter(kept_until__lt=now).order_by("kept_until")
        found = [row.key for row in rows.select_for_update(skip_locked=True)[:most]]
        return RateKey.objects.using(using).filter(Among(found)).delete()[0] if found else 0


def micros(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (moment - _EPOCH) // _MICROSECOND


def _micros_or_0(moment: datetime | None) -> int:
    return 0 if moment is None else micros(moment)


def _moment(at: int) -> datetime:
    return _EPOCH + at * _MICROSECOND
