"""Decide which runs of a timeline with a schedule have to begin, and which slots are passed over. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Final, NamedTuple

from timeline.features.recurring.declaration import A_DAY, Recurring
from timeline.features.recurring.slots import Slot

MOST: Final = 1000  # The most slots that are made up for at a time.


class Known(NamedTuple):
    """
    A run that a slot began at a time. ``is_waiting``: it is open, and nothing of it has begun. ``made_at`` None: not known.
    """

    at: datetime
    key: str
    is_waiting: bool
    made_at: datetime | None = None


class Due(NamedTuple):
    """A run that has to begin: the time of its slot, and its key."""

    at: datetime
    key: str


class Passed(NamedTuple):
    """Slots that are passed over, first to last. ``key``: of the last; empty if the run that waits stands for all."""

    first: datetime
    last: datetime
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence:
    """
    What to do for a timeline: begin runs in order, the last ahead of now; move the waiting run, if its schedule has changed;
    check again at ``ahead``.
    """

    begin: tuple[Due, ...] = ()
    passed: Passed | None = None
    move: Due | None = None
    ahead: datetime


def recurrence(
    recurring: Recurring, last: Known | None, before: Known | None, *, grace: timedelta, now: datetime
) -> Recurrence:
    """
    What has to be done now, after the last two runs that slots began. Raises ``OverflowError`` if there is no further slot. A
    slot that is late by at most ``grace`` does not count as missed.
    """
    if last is None:
        ahead = next(_after(recurring, now))
        return Recurrence(begin=(ahead,), ahead=ahead.at)
    if last.at > now:
        return _standing(recurring, last, before, now)
    ahead = next(due for due in _after(recurring, now) if due.key != last.key)
    missed, newest = _missed(recurring, last, now)
    first = missed or ahead
    if last.is_waiting and (missed or now - last.at > grace):
        first = Due(last.at, last.key)
        newest.insert(0, first)
    wanted = _wanted(recurring, newest, now)
    passed = [due for due in newest if due not in wanted]
    begin = tuple(due for due in wanted if due.key != last.key)
    begin = (*begin, *_new(ahead, begin))
    if not passed:
        return Recurrence(begin=begin, ahead=ahead.at)
    stands = last.is_waiting and first.key == last.key
    return Recurrence(
        begin=begin, passed=Passed(first.at, passed[-1].at, "" if stands else passed[-1].key), ahead=ahead.at
    )


def _new(ahead: Due, begin: tuple[Due, ...]) -> tuple[Due, ...]:
    """The run ahead, unless one of the runs that begin has the same key."""
    return () if any(due.key == ahead.key for due in begin) else (ahead,)


def _standing(recurring: Recurring, last: Known, before: Known | None, now: datetime) -> Recurrence:
    """
    The run ahead exists, is ended or ran early: then the next is begun. If it waits and the schedule has changed, it is moved.
    """
    if not last.is_waiting:
        if not _was_made_by(last, now):  # A clock was ahead then: nobody knows which slots in between had their runs.
            return Recurrence(ahead=last.at)
        ahead = next(_after(recurring, last.at, last.key))
        return Recurrence(begin=(ahead,), ahead=ahead.at)
    move = _next(recurring, before, now)
    # A slot that comes earlier was none when the run was made, unless a clock was ahead then.
    has_more = move.at < last.at and _was_made_by(last, now)
    if recurring.is_slot(last.at, last.key) and not has_more:
        return Recurrence(ahead=last.at)
    return Recurrence(move=move, ahead=move.at)


def _next(recurring: Recurring, before: Known | None, now: datetime) -> Due:
    """The next slot that has had no run: if the run before was ended early, all slots up to its own have."""
    if before is not None and before.at > now and _was_made_by(before, now):
        return next(_after(recurring, before.at, before.key))
    taken = before.key if before is not None else ""
    return next(due for due in _after(recurring, now) if due.key != taken)


def _was_made_by(run: Known, now: datetime) -> bool:
    """Whether a run was made before now. If not, a clock was ahead when it was made, or nobody knows."""
    return run.made_at is not None and run.made_at <= now


def silent_until(recurring: Recurring, last: Known | None, before: Known | None, *, now: datetime) -> datetime | None:
    """Until when passing slots begin no run, as a clock was ahead; None: not so. ``OverflowError``: no further slot."""
    if last is None or last.at <= now or last.made_at is None or last.made_at <= now:
        return None
    return last.at if _next(recurring, before, now).at < last.at else None


def passed_since(recurring: Recurring, last: Known | None, *, now: datetime) -> datetime | None:
    """The first slot after the last run that is over, so that its run should have begun; None: none is, or no run is known."""
    if last is None or last.at > now:
        return None
    following = next(_after(recurring, last.at, last.key)).at
    return following if following <= now else None


def _after(recurring: Recurring, instant: datetime, taken: str = "") -> Iterator[Due]:
    """The slots after a moment: one for each key."""
    slots = iter(()) if recurring.slots is None else recurring.slots.since(instant, recurring.timezone)
    for slot in slots:
        due = _due(recurring, slot)
        if due.key != taken:
            yield due
            taken = due.key


def _due(recurring: Recurring, slot: Slot) -> Due:
    return Due(slot.at, recurring.key_of(slot))


def _missed(recurring: Recurring, last: Known, now: datetime) -> tuple[Due | None, list[Due]]:
    """
    The first slot passed since the last run (None: none), and the newest of all, at most one more than are made up for. They
    are looked for backwards, a longer way each time: a year may have half a million.
    """
    first = next(_after(recurring, last.at, last.key))
    if first.at > now:
        return None, []
    back = A_DAY
    while (since := now - back) > last.at:
        newest = _passed(_after(recurring, since), now)
        if len(newest) > MOST + 1:  # The first is left out: there may be an earlier slot with the same key.
            return first, newest[-MOST - 1 :]
        back *= 4
    return first, _passed(_after(recurring, last.at, last.key), now)[-MOST - 1 :]


def _passed(slots: Iterator[Due], now: datetime) -> list[Due]:
    return list(takewhile(lambda due: due.at <= now, slots))


def _wanted(recurring: Recurring, missed: list[Due], now: datetime) -> list[Due]:
    """The missed slots that are made up for."""
    within = [due for due in missed if now - due.at <= recurring.within]
    if recurring.catch_up == "none":
        return []
    return within[-1:] if recurring.catch_up == "latest" else within[-MOST:]
