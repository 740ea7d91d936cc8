"""Tasks that share a key have the same rate, or the check says which do not."""

from __future__ import annotations

import pytest

from timeline import Rate, Timeline, task
from timeline.features.rates.checks import check_rates
from timeline.features.rates.reading import rate_in_words
from timeline.testing import only_timelines


def timelines(first, second):
    class RateFirst(Timeline):
        @task(rate=first)
        def call(self): ...

    class RateSecond(Timeline):
        @task(rate=second)
        def call(self): ...

    return RateFirst, RateSecond


class TestCheckRates:
    def test_names_tasks_that_share_a_key_and_not_the_rate(self):
        with only_timelines(*timelines(Rate("5/s", "stripe"), Rate("6/s", "stripe"))):
            [error] = check_rates(None)

        assert error.id == "timeline.E007"
        assert (
            error.msg
            == "rate_first.call and rate_second.call share the rate 'stripe': '5/s' for one, '6/s' for the other."
        )

    @pytest.mark.parametrize("second", [Rate("5/s", "stripe"), Rate("6/s", "other"), Rate("6/s"), "6/s", None])
    def test_says_nothing_of_others(self, second):
        with only_timelines(*timelines(Rate("5/s", "stripe"), second)):
            assert check_rates(None) == []


class TestInWords:
    @pytest.mark.parametrize(
        ("rate", "said"),
        [
            (Rate("5/s"), "5/s"),
            (Rate("5/s", "stripe"), "5/s (stripe)"),
            (Rate("5/s", by="zone"), "5/s for each zone"),
            (Rate("5/s", "stripe", by="zone"), "5/s (stripe) for each zone"),
        ],
    )
    def test_says_what_shares_it(self, rate, said):
        assert rate_in_words(rate) == said
