"""Spread: a share of a span, the same each time."""

from datetime import timedelta

import pytest

from timeline.timing import is_spread, share_of

HOUR = timedelta(hours=1)


class TestShareOf:
    def test_is_the_same_for_the_same_names_and_within_the_span(self):
        shares = [share_of(HOUR, "accounts.user", str(key)) for key in range(1000)]

        assert shares == [share_of(HOUR, "accounts.user", str(key)) for key in range(1000)]
        assert all(timedelta(0) <= share < HOUR for share in shares)

    def test_is_even(self):
        quarters = [share_of(HOUR, str(key)) // timedelta(minutes=15) for key in range(4000)]

        assert all(900 < quarters.count(quarter) < 1100 for quarter in range(4))

    def test_tells_names_apart_that_join_alike(self):
        assert share_of(HOUR, "ab", "c") != share_of(HOUR, "a", "bc")


class TestIsSpread:
    @pytest.mark.parametrize("spread", [timedelta(microseconds=1), HOUR, timedelta(days=30)])
    def test_takes_up_to_thirty_days(self, spread):
        assert is_spread(spread)

    @pytest.mark.parametrize("spread", [timedelta(0), -HOUR, timedelta(days=30, seconds=1), 60, None, "1h"])
    def test_takes_nothing_else(self, spread):
        assert not is_spread(spread)
