"""A release gives people three more days: it is read before it is applied, and somebody was promised the old day."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command

from tests.testapp.models import Order
from timeline import Timeline, after, task
from timeline.models import ScheduledTask
from timeline.shortcuts import cancel, hold, move, release, start
from timeline.testing import only_timelines

DAY = timedelta(days=1)
CALLED: list[int] = []


class TenDays(Timeline):
    name = "care"
    entity = "testapp.Order"

    @task(after(days=10))
    def call(self, order: Order) -> None:
        CALLED.append(order.pk)


class ThirteenDays(Timeline):
    """The same, as it is released."""

    name = "care"
    entity = "testapp.Order"

    @task(after(days=13))
    def call(self, order: Order) -> None:
        CALLED.append(order.pk)


@pytest.fixture
def orders(db, clock, now):
    """Four: of the third somebody has moved the call to the twelfth day, of the fourth it was called off."""
    CALLED.clear()
    clock.set(now)
    orders = [Order.objects.create() for _ in range(4)]
    with only_timelines(TenDays):
        for order in orders:
            start(TenDays, order)
        rows = {int(row.entity_id): row for row in ScheduledTask.objects.all()}
        move(rows[orders[2].pk], at=now + 12 * DAY, actor="ada", reason="she is away")
        cancel(rows[orders[3].pk], actor="ada", reason="she has called herself")
    return orders


def called(command: str, *options: str) -> tuple[str, int]:
    """What a command printed, and its exit status."""
    out = StringIO()
    try:
        call_command(command, *options, stdout=out, no_color=True)
    except SystemExit as ended:
        return out.getvalue(), int(ended.code or 0)
    return out.getvalue(), 0


def day_by_day(clock, now, days: range) -> dict[int, list[int]]:
    """Day → which orders are called on it."""
    found = {}
    for day in days:
        CALLED.clear()
        clock.set(now + day * DAY)
        clock.run_due()
        if CALLED:
            found[day] = sorted(CALLED)
    return found


class TestTheRelease:
    def test_is_read_applied_and_stays_so(self, orders, clock, now):
        first, second, moved, _called_off = (order.pk for order in orders)
        with only_timelines(ThirteenDays):
            said, status = called("timeline_plan", "care")
            assert status == 2
            assert "  call: 2 moved by +3 days" in said  # What a person has decided is left alone.

            assert called("timeline_apply", "care") == ("Tasks changed: 2.\n", 0)

            assert called("timeline_plan", "care")[1] == 0
            assert day_by_day(clock, now, range(9, 15)) == {12: [moved], 13: [first, second]}

    def test_leaves_those_alone_who_were_promised_the_old_day(self, orders, clock, now):
        first, second, moved, _called_off = (order.pk for order in orders)
        with only_timelines(ThirteenDays):
            called("timeline_apply", "care", "--keep", "call", "--reason", "it was promised", "--actor", "ada")

            assert called("timeline_plan", "care")[1] == 0
            assert day_by_day(clock, now, range(9, 15)) == {10: [first, second], 12: [moved]}

    def test_takes_along_what_a_hold_has_shifted(self, orders, clock, now):
        """Nobody has decided on a day of its own there."""
        first, second, moved, _called_off = (order.pk for order in orders)
        with only_timelines(TenDays):
            held = hold(orders[0], then="shift", actor="ada", reason="moving house")
            clock.set(now + 2 * DAY)
            release(held, actor="ada", reason="she is there")
            clock.run_due()
        with only_timelines(ThirteenDays):
            assert "  call: 2 moved by +1 day … +3 days" in called("timeline_plan", "care")[0]
            called("timeline_apply", "care")

            assert day_by_day(clock, now, range(9, 16)) == {12: [moved], 13: [first, second]}

    def test_goes_on_where_it_was_stopped(self, orders, clock, now):
        with only_timelines(ThirteenDays):
            assert called("timeline_apply", "care", "--max-rows", "1")[1] == 2
            assert "  call: 1 moved by +3 days" in called("timeline_plan", "care")[0]

            assert called("timeline_apply", "care") == ("Tasks changed: 1.\n", 0)

            assert called("timeline_plan", "care")[1] == 0

    def test_hurts_nothing_where_an_old_process_still_runs(self, orders, clock, now):
        """Between the release and the apply an old process calls on the tenth day, as it knows it; nobody is called twice."""
        first, second, moved, _called_off = (order.pk for order in orders)
        with only_timelines(TenDays):
            found = day_by_day(clock, now, range(9, 11))
        with only_timelines(ThirteenDays):
            called("timeline_apply", "care")
            found |= day_by_day(clock, now, range(11, 20))

        assert found == {10: [first, second], 12: [moved]}
