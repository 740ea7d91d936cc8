"""Which timelines a clock runs."""

from __future__ import annotations

import pytest

from tests.testapp.models import Order
from timeline import Timeline, after, after_run, daily, task
from timeline.models import ScheduledTask
from timeline.shortcuts import emit
from timeline.testing import StoryClock, expect, only_timelines


class Care(Timeline):
    entity = "testapp.Order"
    starts_on = "order.placed"

    @task(after(days=1))
    def greet(self, order: Order) -> None: ...


class Thanks(Timeline):
    """Follows."""

    entity = "testapp.Order"
    starts_on = after_run(Care)

    @task(after(days=1))
    def thank(self, order: Order) -> None: ...


class Billing(Timeline):
    entity = "testapp.Order"
    starts_on = "order.placed"

    @task(after(days=1))
    def bill(self, order: Order) -> None: ...


class Nightly(Timeline):
    starts_on = daily("02:00")

    @task(after())
    def sweep(self) -> None: ...


@pytest.fixture(autouse=True)
def _known():
    with only_timelines(Care, Thanks, Billing, Nightly):
        yield


class TestOnly:
    @pytest.mark.parametrize("only", [[Care], ["care"], (Care, "thanks")])
    def test_runs_the_named_and_what_follows_them(self, order, only):
        with StoryClock(only=only) as clock:
            emit("order.placed", order)
            ran = clock.advance(days=9)

            assert [row.task_name for row in ran] == ["greet", "thank"]
            expect(order).completed("greet").completed("thank").open("bill")

    def test_says_what_it_left_out(self, order):
        with StoryClock(only=[Care]) as clock:
            emit("order.placed", order)
            clock.advance(days=9)

            told = "\n".join(clock.told())
            with pytest.raises(AssertionError) as failure:
                expect(order).completed("bill")

        assert "Tasks run, by timeline: care 1, thanks 1." in told
        for said in (told, str(failure.value)):
            assert "Left out: billing; the test names other timelines." in said
            assert "Left out: nightly; it starts by the clock" in said

    def test_leaves_rows_where_they_are(self, order):
        with StoryClock(only=[Nightly]) as clock:
            emit("order.placed", order)
            clock.advance(days=2)

        assert set(ScheduledTask.objects.filter(task_key="care.greet").values_list("attempt", flat=True)) == {0}

    @pytest.mark.timeline(only=[Billing])
    def test_is_said_by_the_mark_of_the_test(self, order, clock):
        emit("order.placed", order)

        assert [row.task_name for row in clock.advance(days=9)] == ["bill"]

    @pytest.mark.timeline("billing")
    def test_that_a_clock_says_itself_goes_before_the_mark(self, order):
        with StoryClock(only=[Care]) as clock:
            emit("order.placed", order)

            assert [row.task_name for row in clock.run_until(clock.now)] == []
            assert clock.run_next().task_name == "greet"

    @pytest.mark.parametrize(("name", "said"), [("crae", "Did you mean 'care'?"), ("zzz", "Known: billing, care")])
    def test_refuses_a_name_that_is_none(self, db, name, said):
        with StoryClock(only=[name]) as clock, pytest.raises(LookupError, match=said.replace("?", r"\?")):
            clock.advance(days=1)

    def test_may_name_what_is_made_known_later(self, order):
        with StoryClock(only=["care"]) as clock, only_timelines(Care):
            emit("order.placed", order)

            assert [row.task_name for row in clock.advance(days=1)] == ["greet"]


class TestWithoutNames:
    def test_runs_all_that_only_timelines_lets_be_known(self, order, clock):
        emit("order.placed", order)

        ran = clock.advance(days=2)

        assert sorted(row.task_name for row in ran) == ["bill", "greet", "sweep", "sweep", "thank"]
        assert [line for line in clock.told() if "Left out" in line] == []
