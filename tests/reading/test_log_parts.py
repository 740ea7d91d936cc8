"""The log of a task in parts."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection

from tests.postgresql.plans import plans_made_by
from timeline.lifecycle import State
from timeline.models import LogEntry
from timeline.reading.explanation import explain
from timeline.reading.log_parts import MOST, read_log

pytestmark = pytest.mark.django_db


@pytest.fixture
def worn(make_task, now):
    """Make a task that has been tried so often, with four entries for each attempt."""

    def make(times):
        row = make_task(state=State.RETRYABLE, attempt=times, failures=times, seq=4 * times)
        moves = ("retryable", "available", "pending", "active", "retryable")
        LogEntry.objects.bulk_create(
            LogEntry(
                task=row,
                seq=4 * (number - 1) + place,
                at=now + timedelta(minutes=number, seconds=place),
                from_state=moves[place - 1],
                to_state=moves[place],
                attempt=number,
                reason_code="error" if place == 4 else "",
                detail={
                    "error": {"class": "ValueError", "message": f"no. {number}", "traceback": ""},
                    "scheduled_at_before": (now + timedelta(minutes=number)).isoformat(),
                }
                if place == 4
                else {},
            )
            for number in range(1, times + 1)
            for place in range(1, 5)
        )
        return row

    return make


class TestReadLog:
    def test_reads_all_of_a_short_one(self, worn):
        log = read_log(worn(MOST // 4), using="default")

        assert [entry.seq for entry in log.entries] == [*range(1, MOST + 1)]
        assert (log.left_out, log.is_latest) == (0, True)

    def test_reads_the_latest_of_a_long_one_and_says_how_much_is_before(self, worn, now):
        log = read_log(worn(300), using="default")

        assert [entry.seq for entry in log.entries] == [*range(1201 - MOST, 1201)]
        assert log.left_out == 1200 - MOST
        assert log.first_due == now + timedelta(minutes=1)

    def test_goes_on_before_an_entry_as_far_as_the_first(self, worn):
        row = worn(300)
        seen, before = [], None
        while before != 1:
            part = read_log(row, before=before, using="default")
            before = part.entries[0].seq
            seen = [*part.entries, *seen]

        assert [entry.seq for entry in seen] == [*range(1, 1201)]
        assert part.left_out == 0
        assert not part.is_latest

    def test_of_none_is_empty(self, make_task):
        assert read_log(make_task(), using="default") == ([], 0, None, True)

    @pytest.mark.only_postgresql
    def test_reads_no_more_than_a_part(self, worn):
        row = worn(2000)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE timeline_logentry")

        [plan] = plans_made_by(
            lambda: read_log(row, using="default"), about="timeline_logentry", explain="EXPLAIN (ANALYZE)"
        )

        assert "Index Scan Backward using timeline_log_seq" in plan
        assert "Sort" not in plan


def test_a_story_says_what_it_leaves_out(worn, now):
    told = explain(worn(300), now=now + timedelta(days=1), using="default")

    assert "1,000 entries of its log are left out here, the earlier ones." in told
    assert "Attempt 300 ended" in told
    assert "Attempt 250 ended" not in told
