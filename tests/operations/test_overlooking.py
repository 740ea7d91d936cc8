"""Overlooked: new entities that no signal told of, and that have no run."""

from datetime import timedelta

import pytest

from tests.operations.sweeps import Delivery, Welcome, rest_of_round, times_of, whole_round
from tests.testapp.models import Booking, Country, Note, Order, Page, Parcel, Reseller
from timeline import Timeline, after, created, task
from timeline.clocks import MachineTime
from timeline.features.sweep.searches import newcomers, order_of
from timeline.features.sweep.verbs import begin_round, sweep
from timeline.lifecycle import State
from timeline.models import ScheduledTask, Sweep, TimelineRun
from timeline.testing import autostart, only_timelines


class Reading(Timeline):
    entity = "testapp.Note"
    starts_on = created()

    @task(after(days=1))
    def read(self, note): ...


class Arrival(Timeline):
    entity = "testapp.Parcel"
    starts_on = created()

    @task(after(days=1))
    def look(self, parcel): ...


@pytest.fixture(autouse=True)
def _only_these(db, clock, now):
    clock.set(now)
    with only_timelines(Delivery):
        yield


class TestNewcomers:
    @pytest.fixture(autouse=True)
    def _welcome(self):
        with only_timelines(Welcome):
            yield

    def insert(self, count=1):
        """Insert rows that no signal sees."""
        return Order.objects.bulk_create([Order() for _ in range(count)])

    def test_get_the_run_that_no_signal_started(self, now):
        whole_round(now)
        orders = self.insert(3)

        assert whole_round(now)[2] == 3
        assert {run.entity_id for run in TimelineRun.objects.open()} == {str(order.pk) for order in orders}
        assert times_of("welcome.greet") == [now + timedelta(days=1)] * 3

    def test_are_not_those_who_were_there_before_the_first_sweep(self, now):
        self.insert(5)

        for _ in range(3):
            whole_round(now)

        assert not TimelineRun.objects.exists()

    def test_are_not_those_who_were_there_before_the_timeline(self, now):
        with only_timelines(Delivery):
            whole_round(now)
            self.insert(5)

        for _ in range(3):
            whole_round(now)

        assert not TimelineRun.objects.exists()

    def test_are_not_those_who_came_while_the_timeline_was_gone(self, now):
        whole_round(now)
        with only_timelines(Delivery):
            Sweep.objects.update(begun_at=MachineTime(-timedelta(hours=1)))
            rest_of_round(now)
            self.insert(5)

        for _ in range(3):
            whole_round(now)

        assert not TimelineRun.objects.exists()

    def test_are_found_though_a_process_of_an_older_release_sweeps_too(self, now):
        """It does not know the timeline, and leaves alone how far others have come."""
        whole_round(now)
        with only_timelines(Delivery):
            whole_round(now)
        self.insert(2)

        assert whole_round(now)[2] == 2

    def test_are_not_those_who_have_had_their_run(self, now):
        whole_round(now)
        Order.objects.create()
        TimelineRun.objects.update(ended_at=now, end_reason="closed")
        ScheduledTask.objects.update(state=State.CANCELLED, finished_at=now, reason_code="exit")

        whole_round(now)

        assert TimelineRun.objects.count() == 1

    def test_are_not_those_who_met_an_exit_before_they_had_one(self, now, emit_at):
        whole_round(now)
        [order] = self.insert()
        emit_at("order.closed", order, now)

        whole_round(now)

        assert not TimelineRun.objects.exists()

    def test_are_found_in_batches(self, now):
        whole_round(now)
        self.insert(7)

        assert whole_round(now, size=3)[2] == 7

    def test_are_found_though_they_were_committed_after_later_ones(self, now):
        """A key is given when a row is inserted, and may be seen only after keys that were given later."""
        whole_round(now)
        first, second = self.insert(2)
        Order.objects.filter(pk=first.pk).delete()
        whole_round(now)
        Order.objects.bulk_create([Order(pk=first.pk)])

        whole_round(now)

        assert {run.entity_id for run in TimelineRun.objects.open()} == {str(first.pk), str(second.pk)}

    def test_get_none_while_autostart_is_off_and_none_later(self, now):
        whole_round(now)
        self.insert(2)
        with autostart(False):
            for _ in range(3):
                whole_round(now)

        whole_round(now)

        assert not TimelineRun.objects.exists()

    def test_are_told_by_an_indexed_time_where_their_key_has_no_order(self, now):
        with only_timelines(Reading):
            Note.objects.bulk_create([Note()])
            whole_round(now)
            notes = Note.objects.bulk_create([Note() for _ in range(5)])

            started = whole_round(now, size=2)[2]

        assert started == 5
        assert {run.entity_id for run in TimelineRun.objects.all()} == {str(note.pk) for note in notes}

    def test_are_told_by_the_number_that_a_grandchild_has_of_its_parents_parent(self, now):
        class Bonus(Timeline):
            entity = "testapp.Reseller"
            starts_on = created()

            @task(after(days=1))
            def pay(self, reseller): ...

        with only_timelines(Bonus):
            whole_round(now)
            with only_timelines():
                resellers = [Reseller.objects.create() for _ in range(5)]

            started = whole_round(now, size=2)[2]

        assert started == 5
        assert {run.entity_id for run in TimelineRun.objects.all()} == {str(reseller.pk) for reseller in resellers}

    def test_are_passed_over_with_a_word_where_no_row_can_name_them(self, now, caplog):
        class Checking(Timeline):
            entity = "testapp.Page"
            starts_on = created()

            @task(after(days=1))
            def check(self, page): ...

        with only_timelines(Checking):
            whole_round(now)
            Page.objects.bulk_create([Page(url="a"), Page(url="x" * 101), Page(url="z")])

            assert whole_round(now)[2] == 2

        assert "The sweep starts no run of checking: entity: the key of testapp.page" in caplog.text

    def test_are_all_found_where_they_have_the_same_time(self, now):
        with only_timelines(Reading):
            whole_round(now)
            Note.objects.bulk_create([Note() for _ in range(5)])
            Note.objects.update(made_at=now)

            assert whole_round(now, size=2)[2] == 5

    def test_cannot_be_told_where_neither_has(self, now):
        with only_timelines(Arrival):
            whole_round(now)
            Parcel.objects.bulk_create([Parcel()])

            assert whole_round(now) == (0, 0, 0)

    def test_cost_as_many_statements_for_two_hundred_as_for_a_thousand(self, now, statements_of):
        """To start a few takes one trip less, for ten as for a hundred."""

        def statements():
            begin_round(using="default")
            Sweep.objects.filter(pk="").update(begun_at=MachineTime())  # The open runs have no turn.
            return statements_of(lambda: sweep(size=2000, now=now, using="default"))

        whole_round(now)
        self.insert(200)
        few = statements()
        self.insert(1000)

        assert statements() == few


class TestOrderOf:
    @pytest.mark.parametrize(
        ("model", "name"),
        [
            (Order, "id"),
            (Reseller, "customer_ptr"),
            (Note, "made_at"),
            (Page, "made_at"),
            (Parcel, None),
            (Country, None),
            (Booking, None),
        ],
    )
    def test_is_a_number_or_an_indexed_time_of_making(self, model, name):
        column = order_of(model)

        assert (column and column.name) == name


class TestParts:
    def test_are_the_timelines_that_start_with_each_row_whose_order_can_be_told(self):
        with only_timelines(Delivery, Welcome, Reading, Arrival):
            assert [part.name for part in newcomers("default")] == ["welcome", "reading"]
