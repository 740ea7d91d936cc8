"""What it would mean to enroll: counted as it would be done, and nothing written."""

from datetime import timedelta

import pytest

from tests.operations.test_past import DAY, Stay
from tests.testapp.models import Order
from timeline.models import ScheduledTask, TimelineRun
from timeline.operations.enroll import foresee_enrolling
from timeline.operations.sets import pages
from timeline.shortcuts import enroll, start
from timeline.testing import only_timelines
from timeline.timing import LATEST


@pytest.fixture(autouse=True)
def _story(db, clock, now):
    clock.set(now)
    with only_timelines(Stay):
        yield


def ahead_of(clock, **asked):
    given = {"timeline": "stay", "started_at": None, "once": True, "clock": lambda _using: clock.now} | asked
    return list(foresee_enrolling(batches=pages(Order.objects.all(), Order, 2, using="default"), **given))[-1]


class TestForesee:
    @pytest.mark.parametrize("past", ["run", "skip", "expire"])
    @pytest.mark.parametrize("started", [None, 12])
    def test_is_what_is_done_then(self, clock, now, past, started):
        started_at = None if started is None else now - started * DAY
        for number in range(-3, 3):
            Order.objects.create(ships_at=now + number * DAY)

        ahead = ahead_of(clock, past=past, started_at=started_at)
        assert (TimelineRun.objects.count(), ScheduledTask.objects.count()) == (0, 0)
        done = enroll(Stay, Order.objects.all(), past=past, started_at=started_at)

        assert ahead.runs == done.started
        assert sum(ahead.days.values()) == done.tasks - done.cancelled
        assert done.cancelled == (0 if past == "run" else sum(ahead.late.values()))
        open_rows = ScheduledTask.objects.filter(finished_at=None)
        assert sum(ahead.days.values()) == open_rows.count()

    def test_counts_days_on_the_wall_clock(self, clock, now):
        Order.objects.create(ships_at=now + 2 * DAY)
        Order.objects.create(ships_at=now + 2 * DAY + timedelta(hours=20))  # The night between.

        days = ahead_of(clock).days

        assert [(name, (day - now.date()).days, count) for (name, day), count in sorted(days.items())] == [
            ("remind", 10, 2),
            ("ship", 2, 1),
            ("ship", 3, 1),
        ]

    def test_passes_over_who_has_a_run_and_names_what_would_stop_it(self, clock, now):
        start(Stay, Order.objects.create(ships_at=now + DAY))
        Order.objects.create(ships_at=now + DAY)
        far = Order.objects.create(ships_at=now + DAY)
        Order.objects.filter(pk=far.pk).update(ships_at=LATEST + DAY)

        ahead = ahead_of(clock)

        assert (ahead.runs, ahead.passed) == (1, 1)
        [(problem, count)] = ahead.problems.items()
        assert "ships_at" in problem
        assert count == 1
