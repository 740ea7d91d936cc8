"""The trace of a task: what happened to it, in order, each with a bar on one axis; and two attempts beside each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from math import log2
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext, pgettext_lazy

from timeline.admin.references import FAILED_FOR_GOOD
from timeline.lifecycle import FINAL, ReasonCode, State
from timeline.models import LogEntry
from timeline.reading.reason_texts import retold, told_reason
from timeline.told_times import how_long, told_time

if TYPE_CHECKING:
    from django.http import QueryDict
    from django_stubs_ext import StrPromise

    from timeline.models import ScheduledTask
    from timeline.reading.log_parts import LogPart

SHOWN: Final = 60  # Rows of the trace, the latest.
WIDTH: Final = 1000  # Of the axis.
_LEAST: Final = 6  # Of a bar.
_ENDS: Final[dict[str, StrPromise]] = {
    State.COMPLETED: pgettext_lazy("timeline", "completed"),
    State.RETRYABLE: gettext_lazy("failed, will try again"),
    State.DISCARDED: FAILED_FOR_GOOD,
    State.CANCELLED: pgettext_lazy("timeline", "cancelled"),
    State.SCHEDULED: gettext_lazy("given back"),
    State.AVAILABLE: gettext_lazy("given back"),
}
_RESTS: Final = frozenset({ReasonCode.WAITING, ReasonCode.IN_DOUBT, ReasonCode.DEFINITION})


class AttemptLine(NamedTuple):
    """
    One attempt, as the log tells it, in story time; None for ``ended_at``: it runs.

    ``error`` and ``traceback`` are empty where there is none, or where ``is_hidden``: the user may not read it.
    """

    number: int
    started_at: datetime
    ended_at: datetime | None
    state: str
    outcome: str
    error: str
    traceback: str
    is_hidden: bool

    @property
    def took(self) -> str:
        """How long it ran."""
        return how_long((self.ended_at - self.started_at).total_seconds()) if self.ended_at else ""


class TraceRow(NamedTuple):
    """
    Something that happened, or is to come.

    Args:
        until: When it was over; as ``at``: it took no time.
        what, why, who: In words.
        sign: Name of the state whose colour it has.
        took: How long; empty: no time, or not known.
        is_part: Whether it belongs to the attempt above.
        is_ahead: Whether it is yet to come.
        traceback, is_hidden: As of an attempt.
        x, width: Where its bar begins on the axis, and how long it is.
    """

    at: datetime
    until: datetime
    what: str
    sign: str
    why: str = ""
    who: str = ""
    took: str = ""
    is_part: bool = False
    is_ahead: bool = False
    traceback: str = ""
    is_hidden: bool = False
    x: int = 0
    width: int = 0


def attempts_of(log: Sequence[LogEntry], *, payload: bool) -> list[AttemptLine]:
    """Read the attempts out of a log, in their order."""
    ends = {entry.attempt: entry for entry in log if entry.from_state == State.ACTIVE != entry.to_state}
    starts = (entry for entry in log if entry.to_state == State.ACTIVE != entry.from_state)
    return [_attempt(start, ends.get(start.attempt), payload=payload) for start in starts]


def _attempt(start: LogEntry, end: LogEntry | None, *, payload: bool) -> AttemptLine:
    if end is None:
        running = pgettext("timeline", "running")
        return AttemptLine(start.attempt, start.at, None, State.ACTIVE, running, "", "", is_hidden=False)
    error: dict[str, Any] = end.detail.get("error", {})
    hidden = bool(error) and not payload
    said = "" if not error or hidden else f"{error['class']}: {error['message']}"
    if not said and end.reason_code not in (ReasonCode.DONE, ReasonCode.ERROR):
        said = retold(end)
    outcome = pgettext("timeline", "rests") if end.reason_code in _RESTS else str(_ENDS.get(end.to_state, end.to_state))
    traceback = "" if hidden else error.get("traceback", "")
    return AttemptLine(start.attempt, start.at, end.at, end.to_state, outcome, said, traceback, hidden)


def trace(
    task: ScheduledTask,
    log: LogPart,
    attempts: Iterable[AttemptLine],
    parts: Iterable[TraceRow],
    *,
    now: datetime,
) -> tuple[list[TraceRow], bool]:
    """
    Put the rows in the order of their times, of very many the latest; and whether some were left out. ``parts``: what attempts
    consist of, from features.
    """
    first, last = (log.entries[0].at, log.entries[-1].at) if log.entries else (None, None)
    known = [
        part
        for part in parts
        if (log.is_latest or last is None or part.at <= last) and not (log.left_out and first and part.until < first)
    ]
    rows = [*_attempts(attempts, now), *known, *_points(log.entries, task.timeline)]
    rows.sort(key=lambda row: (row.at, row.is_part))
    shown = [*rows[-SHOWN:], *(_ahead(task, now) if log.is_latest else ())]
    return _placed(shown), len(rows) > SHOWN


def _attempts(attempts: Iterable[AttemptLine], now: datetime) -> Iterator[TraceRow]:
    for attempt in attempts:
        what = _("Attempt %(number)s: %(outcome)s") % {"number": attempt.number, "outcome": attempt.outcome}
        ended = attempt.ended_at or max(now, attempt.started_at)
        yield TraceRow(
            attempt.started_at,
            ended,
            what,
            attempt.state,
            attempt.error,
            took=attempt.took,
            traceback=attempt.traceback,
            is_hidden=attempt.is_hidden,
        )


def _points(entries: Iterable[LogEntry], timeline: str) -> Iterator[TraceRow]:
    """What the log says beside attempts. That it became due, was sent to a worker, or enqueued, is no news."""
    for entry in entries:
        why = told_reason(entry, timeline)
        if entry.from_state == entry.to_state:
            if not (_changed(entry) or why or entry.actor):
                continue
            what = changed(entry)
            if moved := entry.detail.get("scheduled_at"):
                what = _("moved to %(at)s") % {"at": told_time(datetime.fromisoformat(moved))}
        elif State.ACTIVE in (entry.from_state, entry.to_state) or not entry.reason_code:
            continue
        else:
            what = str(_ENDS.get(entry.to_state, "")) if entry.to_state in FINAL else _("made due at once")
            if entry.reason_code == ReasonCode.EVENT:
                what = pgettext("timeline", "woken")
        yield TraceRow(entry.at, entry.at, what, entry.to_state, why, entry.actor)


def changed(entry: LogEntry) -> str:
    """What an entry says that is no move between states."""
    return _changed(entry) or pgettext("timeline", "noted")


def _changed(entry: LogEntry) -> str:
    if entry.detail.get("scheduled_at"):
        return pgettext("timeline", "moved")
    if entry.detail.get("resend"):
        return pgettext("timeline", "sent again")
    return pgettext("timeline", "given longer") if entry.detail.get("grace") else ""


def _ahead(task: ScheduledTask, now: datetime) -> Iterator[TraceRow]:
    if not task.is_open or task.state == State.ACTIVE or task.scheduled_at <= now:
        return
    what = pgettext("timeline", "next try") if task.attempt else pgettext("timeline", "due")
    yield TraceRow(task.scheduled_at, task.scheduled_at, what, task.state, is_ahead=True)


def _placed(rows: Sequence[TraceRow]) -> list[TraceRow]:
    """Give each row its bar. A longer pause takes more of the axis, but far from in proportion: days stand beside seconds."""
    times = sorted({moment for row in rows for moment in (row.at, row.until)})
    gaps = [log2(1.1 + (later - sooner).total_seconds()) for sooner, later in pairwise(times)]
    whole, done = sum(gaps) or 1.0, 0.0
    places = {times[0]: 0} if times else {}
    for moment, gap in zip(times[1:], gaps, strict=True):
        done += gap
        places[moment] = round((WIDTH - _LEAST) * done / whole)
    return [row._replace(x=places[row.at], width=max(places[row.until] - places[row.at], _LEAST)) for row in rows]


class Compared(NamedTuple):
    """Two attempts beside each other; ``choices``: the numbers of all that failed."""

    attempts: tuple[AttemptLine, AttemptLine]
    choices: list[int]
    is_asked: bool


def compared(attempts: Sequence[AttemptLine], asked: QueryDict) -> Compared | None:
    """The two that the address names, or the last two that failed; None: there are no two."""
    failed = {attempt.number: attempt for attempt in attempts if attempt.error or attempt.is_hidden}
    if len(failed) < 2:
        return None
    by_text = {str(number): attempt for number, attempt in failed.items()}
    found = [by_text.get(asked.get(name, "")) for name in ("one", "other")]
    one, other = (attempt or last for attempt, last in zip(found, list(failed.values())[-2:], strict=True))
    return Compared((one, other), list(failed), is_asked=any(found))
