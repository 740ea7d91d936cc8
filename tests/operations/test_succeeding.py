"""Succeed: the end of a run begins the run of another timeline, in the same transaction."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from tests.testapp.models import Order
from timeline import Discard, Timeline, after, after_run, at, daily, task
from timeline.features.recurring.verbs import NextBeginnings, recur
from timeline.lifecycle import Reason, RunEnd, State
from timeline.models import ScheduledTask, TimelineRun, ref_of
from timeline.operations.cancel import cancel
from timeline.operations.leave import end_open_runs
from timeline.operations.succession import succeed
from timeline.shortcuts import emit, leave, redrive, start
from timeline.testing import autostart, only_timelines

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
DAY = timedelta(days=1)


class Delivery(Timeline):
    entity = "testapp.Order"
    exits = {"order.closed": "closed"}

    @task(after())
    def ship(self, order):
        if order.note == "discard":
            raise Discard("no such address")

    @task(after(ship))
    def tell(self, order): ...


def follower(declared="thanks", **options):
    """A timeline that begins when a delivery has ended so."""

    class Thanks(Timeline):
        name = declared
        entity = "testapp.Order"
        starts_on = after_run(Delivery, **options)

        @task(after(days=1))
        def thank(self, order): ...

    return Thanks


@pytest.fixture(autouse=True)
def _started_by_themselves(db):
    with autostart(True):
        yield


def begun(timeline="thanks"):
    return list(TimelineRun.objects.filter(timeline=timeline).order_by("pk"))


def delivered(run_at, order, now=NOW, **given):
    """A delivery whose tasks have been run."""
    start("delivery", order, started_at=now, **given)
    for _ in range(2):
        for row in ScheduledTask.objects.open().filter(task_key__startswith="delivery."):
            run_at(row, now)


class TestFinishing:
    def test_begins_a_run_of_the_same_entity_and_key_that_knows_what_it_follows(self, run_at, order):
        with only_timelines(Delivery, follower()):
            delivered(run_at, order, key="parcel 7")

        [run] = begun()
        delivery = TimelineRun.objects.get(timeline="delivery")
        assert (run.entity_ref, run.key, run.started_at) == (ref_of(order), "parcel 7", delivery.ended_at)
        assert run.params == {"after_run": str(delivery.pk), "timeline": "delivery", "ended": "finished"}
        row = ScheduledTask.objects.get(run=run)
        assert (row.task_key, row.scheduled_at) == ("thanks.thank", run.started_at + DAY)

    def test_begins_none_before_the_last_task_has_ended(self, run_at, order):
        with only_timelines(Delivery, follower()):
            start("delivery", order, started_at=NOW)
            run_at(ScheduledTask.objects.get(), NOW)

        assert begun() == []

    def test_is_undone_with_the_end(self, order):
        with only_timelines(Delivery, follower(ended="left")):
            start("delivery", order, started_at=NOW)
            with transaction.atomic():
                leave("delivery", order, reason="moved house")
                assert len(begun()) == 1
                transaction.set_rollback(True)

        assert begun() == []
        assert TimelineRun.objects.get().ended_at is None

    def test_begins_none_where_runs_do_not_start_by_themselves(self, run_at, order):
        with only_timelines(Delivery, follower()), autostart(False):
            delivered(run_at, order)

        assert begun() == []

    def test_leaves_one_that_is_open_as_it_is(self, run_at, order):
        with only_timelines(Delivery, follower()):
            delivered(run_at, order)
            delivered(run_at, order, now=NOW + DAY / 2)

        assert len(begun()) == 1

    def test_follows_each_run_that_the_clock_began(self, run_at):
        class Settlement(Timeline):
            starts_on = daily("02:00", zone="UTC", once_per="day")

            @task(after())
            def settle(self): ...

        class Reconciliation(Timeline):
            starts_on = after_run(Settlement)

            @task(after())
            def reconcile(self): ...

        with only_timelines(Settlement, Reconciliation):
            for day in range(2):
                recur(NextBeginnings(), now=NOW + day * DAY, using="default")
                row = ScheduledTask.objects.open().get(task_key="settlement.settle")
                run_at(row, row.scheduled_at)
                run_at(ScheduledTask.objects.open().get(task_key="reconciliation.reconcile"), row.scheduled_at)

        assert [run.key for run in begun("reconciliation")] == ["2026-03-02", "2026-03-03"]

    def test_says_what_has_no_proper_time_and_ends_all_the_same(self, run_at, order, caplog):
        class Thanks(Timeline):
            entity = "testapp.Order"
            starts_on = after_run(Delivery)

            @task(at("ships_at"))
            def thank(self, order): ...

        Order.objects.filter(pk=order.pk).update(ships_at=datetime(9500, 1, 1, tzinfo=UTC))
        with only_timelines(Delivery, Thanks):
            delivered(run_at, order)

        assert begun() == []
        assert TimelineRun.objects.get().end_code == "finished"
        assert "No run of thanks" in caplog.text


class TestEnds:
    @pytest.mark.parametrize(
        ("how", "told"),
        [
            ("completed", {"completed"}),
            ("discarded", {"finished", "any"}),
            ("cancelled", {"finished", "any"}),
            ("exit", {"exit", "any"}),
            ("left", {"left", "any"}),
            ("deleted", set()),
        ],
    )
    @pytest.mark.parametrize("ended", ["completed", "finished", "exit", "left", "any"])
    def test_count_as_declared(self, run_at, order, how, told, ended):
        told = told | {"finished", "any"} if how == "completed" else told
        with only_timelines(Delivery, follower(ended=ended)):
            if how == "completed":
                delivered(run_at, order)
            elif how == "discarded":
                Order.objects.filter(pk=order.pk).update(note="discard")
                delivered(run_at, order)
            else:
                start("delivery", order, started_at=NOW)
                [row] = ScheduledTask.objects.all()
            if how == "cancelled":
                cancel(task_ids=[row.pk], reason=Reason.operator("no"), now=NOW, using="default")
            elif how == "exit":
                emit("order.closed", order)
            elif how == "left":
                leave("delivery", order, reason="moved house")
            elif how == "deleted":
                order.delete()

        assert TimelineRun.objects.get(timeline="delivery").ended_at is not None
        assert len(begun()) == (ended in told)

    def test_count_once_what_was_discarded_has_been_redriven(self, run_at, order):
        Order.objects.filter(pk=order.pk).update(note="discard")
        with only_timelines(Delivery, follower()):
            delivered(run_at, order)
            assert begun() == []
            Order.objects.filter(pk=order.pk).update(note="")
            redrive(ScheduledTask.objects.get(state=State.DISCARDED), reason="mended")
            for _ in range(2):
                for row in ScheduledTask.objects.open().filter(task_key__startswith="delivery."):
                    run_at(row, NOW)

        assert len(begun()) == 1


class TestSucceed:
    def ending(self, count):
        orders = [Order.objects.create() for _ in range(count)]
        for order in orders:
            start("delivery", order, started_at=NOW)
        with transaction.atomic():
            reason = Reason.operator("all done")
            refs = [ref_of(order) for order in orders]
            end_open_runs(["delivery"], refs, RunEnd.LEFT, reason=reason, now=NOW, using="default")

    @pytest.mark.parametrize("ended", ["any", "completed"])
    def test_takes_the_same_number_of_statements_for_many(self, run_at, ended):
        counts = []
        with only_timelines(Delivery, follower(ended=ended)):
            for count in (2, 20):
                orders = [Order.objects.create() for _ in range(count)]
                with autostart(False):
                    for each in orders:
                        delivered(run_at, each)
                names = [str(each.pk) for each in orders]
                runs = list(TimelineRun.objects.filter(timeline="delivery", entity_id__in=names))
                with transaction.atomic(), CaptureQueriesContext(connection) as asked:
                    assert len(succeed(runs, now=NOW, using="default")) == len(runs) == count
                counts.append(len(asked))

        assert counts[0] == counts[1]

    def test_asks_nothing_where_nothing_follows(self, django_assert_num_queries, order):
        with only_timelines(Delivery):
            run = start("delivery", order, started_at=NOW).run
            run.ended_at, run.end_code = NOW, "finished"
            with django_assert_num_queries(0):
                assert succeed([run], now=NOW, using="default") == []

    def test_begins_all_that_ends_together(self):
        with only_timelines(Delivery, follower(ended="left")):
            self.ending(3)

        assert len(begun()) == 3
