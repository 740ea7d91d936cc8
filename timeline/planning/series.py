"""A repeated task: which of its rows is the last, when the next one is due, and whether there is a next one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, tzinfo
from typing import Final

from timeline.lifecycle import ReasonCode
from timeline.planning.answers import Foreseen, Plan, TaskOutlook, TaskRow, Times
from timeline.timing import Repeat

FORESEEN: Final = 3  # How many rows of a series are foreseen after the one that exists.

# A person has cancelled it, or the condition that ends the series became true.
_ENDS: Final = frozenset({ReasonCode.OPERATOR, ReasonCode.UNTIL})


def is_number(occurrence: str) -> bool:
    """Whether the occurrence of a row is a number, as in a series."""
    return occurrence.isascii() and occurrence.isdecimal()


def at_later(first: Times, nominal: datetime) -> Times:
    """The times of a later row, from those of the first."""
    apart = nominal - first.nominal_at
    return replace(
        first,
        nominal_at=nominal,
        scheduled_at=first.scheduled_at + apart,
        expires_at=None if first.expires_at is None else first.expires_at + apart,
    )


class Series:
    """The rows of one repeated task: occurrence → its latest row, and what gives their times."""

    def __init__(self, latest: Mapping[str, TaskRow], repeats: Repeat, first: datetime, zone: tzinfo) -> None:
        rows = sorted((row for row in latest.values() if is_number(row.occurrence)), key=_number)
        self.earlier: Sequence[TaskRow] = rows[:-1]
        self.last: TaskRow | None = rows[-1] if rows else None
        self._repeats, self._first, self._zone = repeats, first, zone

    @property
    def number(self) -> int:
        """Number of the last row; 0: there is none yet."""
        return _number(self.last) if self.last else 0

    @property
    def is_over(self) -> bool:
        """Whether no row follows the last one, which has ended."""
        most = self._repeats.most
        return self.last is not None and (self.last.reason_code in _ENDS or (most is not None and self.number >= most))

    def present(self) -> datetime:
        """
        The present time of the last row: the time that it was given, unless the schedule has changed. It keeps it, too, if the
        row before was run again and has ended later.
        """
        row, before = self.last, self.earlier[-1] if self.earlier else None
        if row is None or before is None:
            return self._first
        wanted = self._following(before)
        if row.nominal_at < wanted and self._repeats.is_time(row.nominal_at, self._first, self._zone):
            return row.nominal_at
        return wanted

    def following(self) -> datetime:
        """The time of the row after the last one, which has ended: one interval later, or the first time after its end."""
        return self._first if self.last is None else self._following(self.last)

    def _following(self, row: TaskRow) -> datetime:
        since = row.nominal_at if row.finished_at is None else max(row.nominal_at, row.finished_at)
        return self._repeats.time_after(since, self._first, self._zone)

    def foresee(self, name: str, number: int, standing: Sequence[TaskOutlook], result: Plan) -> TaskOutlook:
        """Add the foreseen rows after the last one, ``number``; gives the outlook. ``standing``: of the rows, in order."""
        last, most = standing[-1], self._repeats.most
        if last.expected_at is None:  # The series is over, but a row with an earlier number may have been made again.
            return next((outlook for outlook in standing if outlook.to_come), last)
        since = last.expected_at if self.last is None else max(last.expected_at, self.last.nominal_at)
        at = since
        for following in range(number + 1, min(number + FORESEEN, most or number + FORESEEN) + 1):
            at = self._repeats.time_after(at, self._first, self._zone)
            result.foreseen.append(
                Foreseen(task_name=name, predecessor=name, expected_at=at, occurrence=str(following))
            )
        if most is None:
            return TaskOutlook(to_come=True)
        return TaskOutlook(to_come=True, expected_at=self._last_of(most - number, since))

    def _last_of(self, further: int, since: datetime) -> datetime:
        """When the last row is expected, if so many follow one that is expected at the given time."""
        if further <= 0:
            return since
        return self._repeats.time_of(further, self._repeats.time_after(since, self._first, self._zone), self._zone)


def _number(row: TaskRow) -> int:
    return int(row.occurrence)
