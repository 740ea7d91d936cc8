"""The trace of a task: its rows, their order, their bars; and two attempts beside each other."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest
from django.http import QueryDict

from timeline.admin.task_trace import SHOWN, WIDTH, attempts_of, compared, trace
from timeline.lifecycle import State
from timeline.models import LogEntry, ScheduledTask
from timeline.reading.log_parts import LogPart


def whole(log):
    """All of a log."""
    return LogPart(log, 0, None)


@pytest.fixture
def failing(now):
    """A task that has failed so often, and its log: each attempt took two seconds, and the next one began a minute later."""

    def fail(times, *, payload=True):
        row = ScheduledTask(
            task_key="care.call", state=State.RETRYABLE, attempt=times, scheduled_at=now + timedelta(days=9)
        )
        log = []
        for number in range(1, times + 1):
            at = now + timedelta(minutes=number)
            log.append(LogEntry(at=at, from_state="available", to_state="active", attempt=number))
            error = {"class": "ValueError", "message": f"no. {number}", "traceback": f"Traceback {number}"}
            ended = LogEntry(at=at + timedelta(seconds=2), from_state="active", to_state="retryable", attempt=number)
            ended.reason_code, ended.detail = "error", {"error": error}
            log.append(ended)
        return row, log, attempts_of(log, payload=payload)

    return fail


class TestTrace:
    def test_has_attempts_and_what_lies_ahead_in_order(self, failing, now):
        row, log, attempts = failing(2)

        rows, is_cut = trace(row, whole(log), attempts, [], now=now + timedelta(hours=1))

        assert [one.what for one in rows] == [
            "Attempt 1: failed, will try again",
            "Attempt 2: failed, will try again",
            "next try",
        ]
        assert [(one.took, one.why, one.is_ahead) for one in rows] == [
            ("2.0 s", "ValueError: no. 1", False),
            ("2.0 s", "ValueError: no. 2", False),
            ("", "", True),
        ]
        assert not is_cut

    def test_has_no_row_for_an_entry_that_says_nothing(self, now):
        row = ScheduledTask(task_key="care.call", state=State.AVAILABLE, scheduled_at=now)
        said = {"from_state": "available", "to_state": "available", "at": now}
        log = [
            LogEntry(**said, detail={"of": "another app"}),
            LogEntry(**said, detail={"of": "another app"}, actor="ada"),
            LogEntry(**said, detail={"grace": 5}),
        ]

        rows, _is_cut = trace(row, whole(log), [], [], now=now)

        assert [(one.what, one.who) for one in rows] == [("noted", "ada"), ("given longer", "")]

    def test_places_bars_in_order_within_the_axis_days_beside_seconds(self, failing, now):
        row, log, attempts = failing(5)

        rows, _is_cut = trace(row, whole(log), attempts, [], now=now + timedelta(hours=1))

        assert rows[0].x == 0
        assert all(one.x + one.width <= other.x for one, other in pairwise(rows))
        assert all(one.width >= 6 for one in rows)
        assert rows[-1].x + rows[-1].width <= WIDTH

    def test_of_very_many_has_the_latest_and_says_so(self, failing, now):
        row, log, attempts = failing(SHOWN + 40)

        rows, is_cut = trace(row, whole(log), attempts, [], now=now + timedelta(days=1))

        assert is_cut
        assert len(rows) == SHOWN + 1
        assert rows[0].what.startswith("Attempt 41:")

    def test_of_a_task_that_only_waits_has_its_time(self, now):
        row = ScheduledTask(state=State.SCHEDULED, scheduled_at=now + timedelta(days=1))

        [ahead], is_cut = trace(row, whole([]), [], [], now=now)

        assert (ahead.what, ahead.is_ahead, is_cut) == ("due", True, False)


class TestCompared:
    def test_are_the_last_two_unless_others_are_asked_for(self, failing):
        _row, _log, attempts = failing(4)

        last, asked = compared(attempts, QueryDict()), compared(attempts, QueryDict("one=1&other=4"))

        assert ([one.number for one in last.attempts], last.is_asked) == ([3, 4], False)
        assert ([one.number for one in asked.attempts], asked.is_asked) == ([1, 4], True)
        assert asked.choices == [1, 2, 3, 4]

    @pytest.mark.parametrize("asked", ["one=9", "one=x&other=²", "one=-1", "one=0000000019", "one=" + "1" * 5000])
    def test_take_no_nonsense(self, failing, asked):
        _row, _log, attempts = failing(3)

        assert [one.number for one in compared(attempts, QueryDict(asked)).attempts] == [2, 3]

    def test_need_two(self, failing):
        assert compared(failing(1)[2], QueryDict()) is None

    def test_hide_what_may_not_be_read(self, failing):
        _row, _log, attempts = failing(2, payload=False)

        assert [(one.error, one.traceback, one.is_hidden) for one in compared(attempts, QueryDict()).attempts] == [
            ("", "", True)
        ] * 2
