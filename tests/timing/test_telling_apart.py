"""Seconds, where times of one answer would read alike without them."""

from datetime import timedelta

import pytest

from tests.timing.moments import utc
from timeline.timing import in_utc
from timeline.told_times import told_apart, where_apart

NINE = utc(2026, 6, 1, 9)


def told(*moments):
    return told_apart(lambda: [f"Due on {in_utc(moment)}." for moment in moments])


class TestToldApart:
    def test_shows_seconds_where_two_times_are_of_one_minute(self):
        assert told(NINE, NINE + timedelta(seconds=10)) == [
            "Due on 2026-06-01 09:00:00 UTC.",
            "Due on 2026-06-01 09:00:10 UTC.",
        ]

    def test_shows_them_of_all_times_then(self):
        assert (
            told(NINE, NINE + timedelta(seconds=10), NINE + timedelta(days=1))[2] == "Due on 2026-06-02 09:00:00 UTC."
        )

    @pytest.mark.parametrize("apart", [timedelta(0), timedelta(milliseconds=900), timedelta(minutes=1, seconds=5)])
    def test_leaves_them_out_where_nothing_is_gained(self, apart):
        assert told(NINE, NINE + apart)[0] == "Due on 2026-06-01 09:00 UTC."

    def test_looks_at_the_whole_answer_where_one_is_part_of_another(self):
        whole = told_apart(lambda: [*told(NINE), *told(NINE + timedelta(seconds=10))])

        assert whole == ["Due on 2026-06-01 09:00:00 UTC.", "Due on 2026-06-01 09:00:10 UTC."]

    def test_keeps_columns_in_line(self):
        lines = told_apart(
            lambda: [in_utc(NINE), in_utc(NINE + timedelta(seconds=1)), f"some day{where_apart('   ')}|"]
        )

        assert lines[2] == "some day   |"

    def test_ends_with_an_error(self):
        with pytest.raises(ZeroDivisionError):
            told_apart(lambda: [str(1 // 0)])

        assert in_utc(NINE) == "2026-06-01 09:00 UTC"
