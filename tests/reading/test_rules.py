"""What a timeline declares about its runs, in words."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import translation

from timeline import Timeline, after, daily, hourly, task
from timeline.reading.inventory import rules_of
from timeline.registry import registry
from timeline.testing import only_timelines


def rules(**declared):
    def go(self, order=None): ...

    with only_timelines(type("Job", (Timeline,), {"go": task(after())(go), **declared})):
        return list(rules_of(registry.timeline("job")))


ORDERS = {"entity": "testapp.Order", "starts_on": "order.placed"}


class TestRulesOf:
    @pytest.mark.parametrize(
        ("declared", "said"),
        [
            (ORDERS, []),
            ({**ORDERS, "once": True}, ["one run ever of the same key"]),
            ({**ORDERS, "key": ("payment", "attempt")}, ["a run of its own for each payment, attempt of the event"]),
            ({**ORDERS, "again": True}, ["events that come while a run is open begin one more when it has finished"]),
            (
                {"starts_on": daily("02:00", once_per="day")},
                [
                    "one run a day",
                    "a run is skipped while an earlier one is open",
                    "of the times that were missed, the last is made up for, up to 1 day later",
                ],
            ),
            (
                {"starts_on": hourly(overlap="queue", catch_up="all", within=timedelta(hours=6))},
                [
                    "a run waits while an earlier one is open",
                    "all times that were missed are made up for, up to 6 hours later",
                ],
            ),
            (
                {"starts_on": hourly(overlap="allow", catch_up="none")},
                ["runs may overlap", "times that were missed are not made up for"],
            ),
        ],
    )
    def test_says_how_many_runs_there_may_be(self, declared, said):
        assert rules(**declared) == said

    def test_speaks_the_language_of_the_reader(self):
        with translation.override("de"):
            assert rules(**ORDERS, once=True) == ["ein einziger Lauf desselben Schlüssels"]
