"""Drift: open runs whose rows are not what their definition and their entity say now."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from tests.operations import conftest as operations
from tests.operations.sweeps import Delivery, times_of, whole_round
from tests.testapp.models import Order, Seller
from timeline import Timeline, after, task
from timeline.features.plans.drift import drifted
from timeline.features.sweep.verbs import begin_round, sweep
from timeline.lifecycle import State
from timeline.models import ScheduledTask, TimelineRun, ref_of
from timeline.testing import only_timelines

planned = operations.planned  # A fixture.


class Tail(Timeline):
    """What remains of the deliveries' definition in a later release."""

    entity = "testapp.Order"
    name = "delivery"

    @task(after("ships_at", days=2))
    def ship(self, order): ...


class Less(Timeline):
    """Another class of the same name: it has none of their tasks."""

    entity = "testapp.Order"
    name = "delivery"

    @task()
    def call(self, order): ...


class Watch(Timeline):
    entity = "testapp.Seller"

    @task(after(days=90))
    def look(self, seller): ...


@pytest.fixture(autouse=True)
def _only_these(db, clock, now):
    clock.set(now)
    with only_timelines(Delivery):
        yield


class TestDrift:
    def test_moves_rows_whose_entity_was_updated_behind_their_back(self, planned, now, later):
        planned(3)
        Order.objects.all().update(ships_at=later - timedelta(hours=5))

        assert whole_round(now) == (3, 3, 0)
        assert times_of("delivery.ship") == [later - timedelta(hours=5)] * 3

    def test_changes_nothing_where_nothing_drifted(self, planned, now):
        planned(3)
        before = list(ScheduledTask.objects.order_by("pk").values())

        assert whole_round(now) == (3, 0, 0)
        assert list(ScheduledTask.objects.order_by("pk").values()) == before

    def test_follows_a_changed_definition(self, planned, now, later):
        planned(2)

        with only_timelines(Tail):
            assert whole_round(now) == (2, 2, 0)

        assert times_of("delivery.ship") == [later + timedelta(days=2)] * 2
        assert times_of("delivery.ask") == [now + timedelta(days=90)] * 2

    def test_cancels_nothing_that_has_no_definition_any_more_however_often_it_looks(self, planned, now, later):
        planned(34)
        with only_timelines(Less):
            assert whole_round(now) == (34, 0, 0)
            assert whole_round(now) == (34, 0, 0)

        assert len(times_of("delivery.ship")) == len(times_of("delivery.ask")) == 34
        assert TimelineRun.objects.open().count() == 34

    def test_cancels_it_if_a_setting_says_so(self, planned, now, settings):
        planned(2)
        settings.TIMELINE = {**settings.TIMELINE, "CANCEL_UNDEFINED": True}

        with only_timelines(Tail):
            assert whole_round(now) == (2, 2, 0)

        assert times_of("delivery.ask") == []

    def test_leaves_runs_of_a_timeline_that_is_gone(self, planned, now):
        planned(3)

        with only_timelines(Watch):
            assert whole_round(now) == (3, 0, 0)

        assert TimelineRun.objects.open().count() == 3

    def test_ends_them_if_a_setting_says_so(self, planned, now, settings):
        planned(3)
        settings.TIMELINE = {**settings.TIMELINE, "CANCEL_UNDEFINED": True}

        with only_timelines(Watch):
            assert whole_round(now) == (3, 3, 0)

        assert {(run.end_code, run.end_reason) for run in TimelineRun.objects.all()} == {
            ("left", "delivery has no definition any more")
        }
        assert {row.reason_code for row in ScheduledTask.objects.all()} == {"definition"}

    @pytest.mark.parametrize("how", ["raw SQL", "_raw_delete"])
    def test_ends_runs_whose_entity_is_gone(self, planned, now, how):
        first, second = planned(2)
        if how == "raw SQL":
            with connection.cursor() as cursor:
                cursor.execute("DELETE FROM testapp_order WHERE id = %s", [first.pk])
        else:
            Order.objects.filter(pk=first.pk)._raw_delete("default")

        assert whole_round(now) == (2, 1, 0)
        assert TimelineRun.objects.open().get().entity_id == str(second.pk)
        assert set(ScheduledTask.objects.for_entity(first).values_list("state", "reason_code")) == {
            (State.CANCELLED, "entity_gone")
        }

    def test_leaves_runs_if_the_table_shows_no_row_at_all(self, planned, now, caplog):
        planned(2)
        Order.objects.all()._raw_delete("default")

        assert whole_round(now) == (2, 0, 0)
        assert TimelineRun.objects.open().count() == 2
        assert "Entities that are not there: 2" in caplog.text
        assert "testapp_order shows no row at all" in caplog.text

    @pytest.mark.parametrize(("most", "ended"), [(2, 0), (3, 3), (None, 3)])
    def test_leaves_runs_if_more_entities_are_missing_than_may_be(self, planned, now, settings, most, ended):
        """Perhaps this is another database."""
        orders = planned(4)
        settings.TIMELINE = {"MAX_GONE": most}
        Order.objects.exclude(pk=orders[0].pk)._raw_delete("default")

        assert whole_round(now) == (4, ended, 0)

    def test_leaves_runs_whose_entity_a_manager_hides(self, now, start_at):
        seller = Seller.objects.create()
        with only_timelines(Watch):
            start_at("watch", seller, now)
            Seller.objects.all().update(hidden=True)

            assert whole_round(now) == (1, 0, 0)

        assert TimelineRun.objects.get().is_open

    def test_leaves_runs_that_name_another_model_than_their_timeline(self, planned, now):
        """A model that was renamed, and whose rows have not been relabelled yet."""
        planned(1)
        TimelineRun.objects.update(entity_label="shop.order")

        assert whole_round(now) == (1, 0, 0)
        assert TimelineRun.objects.get().is_open

    def test_leaves_runs_of_timelines_it_does_not_know(self, planned, now):
        planned(1)

        with only_timelines():
            assert whole_round(now) == (1, 0, 0)

    def test_leaves_runs_with_a_task_that_is_being_run(self, planned, now, later):
        planned(1)
        ship = ScheduledTask.objects.get(task_key="delivery.ship")
        Order.objects.update(ships_at=later + timedelta(days=1))
        far = datetime(2999, 1, 1, tzinfo=UTC)
        ScheduledTask.objects.filter(pk=ship.pk).update(state=State.ACTIVE, attempt=1, lease_expires_at=far)

        assert whole_round(now) == (1, 0, 0)

    def test_leaves_an_entity_whose_date_is_out_of_range_and_mends_the_others(self, planned, now, later, caplog):
        orders = planned(3)
        Order.objects.update(ships_at=later + timedelta(hours=1))
        Order.objects.filter(pk=orders[1].pk).update(ships_at=datetime(9001, 1, 1, tzinfo=UTC))

        assert whole_round(now) == (3, 2, 0)
        assert times_of("delivery.ship") == [later + timedelta(hours=1), later, later + timedelta(hours=1)]
        assert f"delivery of testapp.order {orders[1].pk} is left as it is" in caplog.text

    def test_does_as_many_statements_for_ten_as_for_five_hundred(self, planned, now, later, statements_of):
        def statements():
            Order.objects.update(ships_at=later + timedelta(hours=TimelineRun.objects.count()))
            begin_round(using="default")
            return statements_of(lambda: sweep(size=2000, now=now, using="default"))

        planned(10)
        whole_round(now)
        few = statements()
        whole_round(now)
        planned(490)

        assert statements() == few


class TestDrifted:
    def test_names_just_those_that_would_change_and_changes_nothing(self, planned, now, later):
        orders = planned(3)
        Order.objects.filter(pk=orders[1].pk).update(ships_at=later + timedelta(hours=1))
        before = list(ScheduledTask.objects.order_by("pk").values())

        found = drifted(TimelineRun.objects.all(), now=now, using="default")

        assert [run.entity_id for run in found] == [str(orders[1].pk)]
        assert list(ScheduledTask.objects.order_by("pk").values()) == before

    def test_names_those_of_which_nothing_is_left(self, planned, now):
        [order] = planned(1)
        ended = {"state": State.CANCELLED, "finished_at": now, "reason_code": "operator"}
        ScheduledTask.objects.update(**ended)

        assert [run.entity_ref for run in drifted(TimelineRun.objects.all(), now=now, using="default")] == [
            ref_of(order)
        ]
