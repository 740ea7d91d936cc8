"""Rows follow a definition that has changed; what a person keeps or cancels stays so."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.testapp.models import Order
from timeline import Timeline, after, task
from timeline.clocks import story_now
from timeline.engine.groups import begin_given, run_begun
from timeline.exceptions import InvalidInput, UnknownTask
from timeline.features.plans import apply, drift
from timeline.features.plans.apply import apply_choices, check_choices
from timeline.features.plans.differ import differences
from timeline.features.plans.drift import drifted
from timeline.features.plans.drift_query import in_doubt
from timeline.features.sweep.verbs import begin_round, sweep
from timeline.models import ScheduledTask, TimelineRun
from timeline.registry import registry
from timeline.shortcuts import start
from timeline.testing import only_timelines

DAY = timedelta(days=1)


class Before(Timeline):
    name = "care"
    entity = "testapp.Order"

    @task(after(days=10))
    def remind(self, order): ...

    @task(after(days=20))
    def dropped(self, order): ...


class Now(Timeline):
    """It reminds three days later, drops one task and has another, with what follows it."""

    name = "care"
    entity = "testapp.Order"

    @task(after(days=13))
    def remind(self, order): ...

    @task(after(days=40))
    def look(self, order): ...

    @task(after(look, days=1))
    def close(self, order): ...


@pytest.fixture(autouse=True)
def _story(db, clock, now):
    clock.set(now)


@pytest.fixture
def orders():
    orders = [Order.objects.create() for _ in range(5)]
    with only_timelines(Before):
        for order in orders:
            start(Before, order)
    return orders


@pytest.fixture
def changed(orders):
    with only_timelines(Now):
        yield registry.timeline("care")


def apply_to(definition, *, size=1000, **choices):
    choices = check_choices(definition, **choices)
    return list(apply_choices(choices, size=size, clock=story_now, using="default"))


def rows(task_key):
    return ScheduledTask.objects.filter(task_key=f"care.{task_key}")


def differ(definition, now):
    *_, found = differences([definition], now=now, using="default")
    return found["care"].changed


class TestWhatFollows:
    def test_is_as_the_definition_says(self, changed, now):
        assert differ(changed, now) == 5

        done = apply_to(changed)

        assert (sum(some.looked for some in done), sum(some.runs for some in done)) == (5, 5)
        assert sum(some.rows for some in done) == 15
        assert {row.scheduled_at for row in rows("remind")} == {now + 13 * DAY}
        assert {row.state for row in rows("dropped")} == {"cancelled"}
        assert {row.scheduled_at for row in rows("look")} == {now + 40 * DAY}
        assert differ(changed, now) == 0

    def test_is_not_done_a_second_time(self, changed):
        apply_to(changed)

        assert [tuple(some) for some in apply_to(changed)] == [(5, 0, 0)]

    def test_goes_on_where_it_stopped(self, changed, now):
        walk = apply_choices(check_choices(changed), size=2, clock=story_now, using="default")
        assert next(walk).runs == 2  # And then its process is killed.
        walk.close()

        assert sum(some.runs for some in apply_to(changed, size=2)) == 3
        assert differ(changed, now) == 0

    def test_takes_as_many_statements_for_many(self, changed, orders):
        with CaptureQueriesContext(
            connection,
        ) as few:
            apply_to(changed)
        with only_timelines(Before):
            for _ in range(20):
                start(Before, Order.objects.create())
        with CaptureQueriesContext(connection) as many:
            apply_to(changed)

        assert len(many) <= len(few)


class TestWhatIsKept:
    def test_stays_at_its_time_though_its_definition_has_another(self, changed, now, clock):
        apply_to(changed, keep=["remind", "look"], reason="Told them the 11th", actor="ops")

        assert {(row.state, row.scheduled_at, row.nominal_at) for row in rows("remind")} == {
            ("scheduled", now + 10 * DAY, now + 13 * DAY)
        }
        entry = rows("remind")[0].log.latest("seq")
        assert (entry.reason_code, entry.reason, entry.actor) == ("moved", "Told them the 11th", "ops")
        assert {(row.state, row.reason_code) for row in rows("look")} == {("cancelled", "operator")}
        assert differ(changed, now) == 0

    def test_is_left_alone_by_sweeps_and_runs_at_its_time(self, changed, now, clock):
        apply_to(changed, keep=["remind"], reason="Told them")
        begin_round(using="default")
        while sweep(now=now, using="default").left:
            pass
        clock.set(now + 10 * DAY)

        clock.run_due()

        assert {row.state for row in rows("remind")} == {"completed"}

    def test_is_so_too_where_it_is_due_already(self, changed, now, clock):
        clock.set(now + 11 * DAY)
        rows("remind").update(state="available")

        apply_to(changed, keep=["remind"], reason="Told them")

        open_ones = rows("remind").filter(finished_at=None)
        assert {(row.revision, row.scheduled_at) for row in open_ones} == {(2, now + 10 * DAY)}
        clock.run_due()
        assert rows("remind").filter(state="completed").count() == 5

    def test_counts_from_another_anchor_again(self, changed, now):
        apply_to(changed, keep=["look"], reason="Not for them")

        assert rows("close").count() == 0


class TestWhatHasBegun:
    """A worker begins a task between the look at its run and the lock."""

    @pytest.mark.parametrize("choice", [{}, {"keep": ["remind"]}, {"cancel": ["remind"]}])
    def test_is_left_to_its_outcome(self, changed, now, clock, monkeypatch, choice):
        clock.set(now + 10 * DAY)
        row = rows("remind").earliest("pk")
        begun = []

        def looks(*given, **more):
            found = in_doubt(*given, **more)
            begun.extend(begin_given(task_ids=[row.pk], clock=lambda: clock.now, using="default"))
            return found

        monkeypatch.setattr(apply, "in_doubt", looks)
        apply_to(changed, reason="as it was", **choice)
        row.refresh_from_db()
        assert row.state == "active"

        run_begun(begun[0], clock=lambda: clock.now, using="default")

        assert (
            row.log.latest("seq").reason == "its schedule was changed to a later one"
        )  # It had not entered its handler.
        assert rows("look").filter(run=row.run, state="scheduled").count() == 1

    def test_is_left_by_sweeps_as_well(self, changed, now, clock, monkeypatch):
        clock.set(now + 10 * DAY)
        row = rows("remind").earliest("pk")

        def looks(*given, **more):
            found = drifted(*given, **more)
            list(begin_given(task_ids=[row.pk], clock=lambda: clock.now, using="default"))
            return found

        monkeypatch.setattr(drift, "drifted", looks)
        begin_round(using="default")
        while sweep(now=clock.now, using="default").left:
            pass

        row.refresh_from_db()
        assert row.state == "active"
        assert rows("look").count() == 4


class TestWhatIsCancelled:
    def test_is_so_for_good(self, changed, now):
        apply_to(changed, cancel=["remind", "look"], reason="Nobody wants it", actor="ops")

        for name in ("remind", "look"):
            assert {(row.state, row.reason_code, row.reason, row.actor) for row in rows(name)} == {
                ("cancelled", "operator", "Nobody wants it", "ops")
            }
        assert rows("close").count() == 0

    def test_ends_a_run_of_which_nothing_is_left(self, changed, orders):
        apply_to(changed, cancel=["remind", "look"], reason="Nobody wants it")

        assert not TimelineRun.objects.open().exists()
        assert ScheduledTask.objects.filter(finished_at=None).count() == 0


class TestBadChoices:
    def test_say_what_is_wrong(self, changed):
        with pytest.raises(UnknownTask, match=r"care\.gone.*care\.close, care\.look, care\.remind"):
            check_choices(changed, keep=["gone"], reason="x")
        with pytest.raises(InvalidInput, match="remind is to be kept as well"):
            check_choices(changed, keep=["remind"], cancel=["remind"], reason="x")
        with pytest.raises(InvalidInput, match="reason"):
            check_choices(changed, keep=["remind"])
