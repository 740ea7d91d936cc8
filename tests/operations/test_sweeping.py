"""Sweep: what no signal saw is found, a bounded part at a time, and mended."""

from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import call_command
from django.db import connection

from tests.testapp.models import Note, Order, Page, Parcel, Reseller, Seller
from timeline import Timeline, after, at, created, task
from timeline.clocks import MachineTime
from timeline.exceptions import WrongSite
from timeline.lifecycle import State
from timeline.models import Identity, ScheduledTask, Sweep, TimelineRun
from timeline.operations.sweeping import begin_round, sweep
from timeline.testing import autostart, only_timelines


class Delivery(Timeline):
    entity = "testapp.Order"

    @task(at("ships_at"))
    def ship(self, order): ...

    @task(after(days=90))
    def ask(self, order): ...


class Tail(Timeline):
    """What remains of the deliveries' definition in a later release."""

    entity = "testapp.Order"
    name = "delivery"

    @task(after("ships_at", days=2))
    def ship(self, order): ...


class Watch(Timeline):
    entity = "testapp.Seller"

    @task(after(days=90))
    def look(self, seller): ...


class Welcome(Timeline):
    entity = "testapp.Order"
    starts_on = created()
    exits = {"order.closed": "closed"}

    @task(after(days=1))
    def greet(self, order): ...


class Reading(Timeline):
    entity = "testapp.Note"
    starts_on = created()

    @task(after(days=1))
    def read(self, note): ...


class Absent(Timeline):
    entity = "testapp.Seller"
    starts_on = created()

    @task(after(days=1))
    def look(self, seller): ...


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


@pytest.fixture
def planned(now, later, start_at):
    """So many orders, each with an open run and a date: ``planned(3)``."""

    def plan(count):
        orders = Order.objects.bulk_create([Order(ships_at=later) for _ in range(count)])
        for order in orders:
            start_at("delivery", order, now)
        return orders

    return plan


def whole_round(now, **given):
    """Sweep until nothing is left."""
    begin_round(using="default")
    return rest_of_round(now, **given)


def rest_of_round(now, **given):
    swept = []
    while (last := sweep(now=now, using="default", **given)).left:
        swept.append(last)
    return tuple(sum(part[place] for part in swept) for place in range(3))


def times_of(name):
    return list(
        ScheduledTask.objects.open().filter(task_key=name).order_by("pk").values_list("scheduled_at", flat=True)
    )


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
        assert times_of("delivery.ask") == []

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

    def test_does_as_many_statements_for_ten_as_for_a_thousand(self, planned, now, later, statements_of):
        def statements():
            Order.objects.update(ships_at=later + timedelta(hours=TimelineRun.objects.count()))
            begin_round(using="default")
            return statements_of(lambda: sweep(size=2000, now=now, using="default"))

        planned(10)
        whole_round(now)
        few = statements()
        whole_round(now)
        planned(990)

        assert statements() == few


class TestRounds:
    def test_go_on_where_the_last_call_stopped(self, planned, now, later):
        planned(7)
        Order.objects.update(ships_at=later + timedelta(hours=1))

        assert sweep(size=3, now=now, using="default")[:2] == (3, 3)
        assert rest_of_round(now, size=3) == (4, 4, 0)

    def test_begin_an_interval_apart(self, planned, now, settings):
        planned(1)
        whole_round(now)

        assert sweep(now=now, using="default") == (0, 0, 0, False)

        Sweep.objects.update(begun_at=MachineTime(-timedelta(minutes=10)))
        assert sweep(now=now, using="default").looked == 1

    def test_find_what_came_behind_the_place_where_they_are_in_the_next_one(self, planned, now, later):
        planned(4)
        sweep(size=2, now=now, using="default")
        Order.objects.update(ships_at=later + timedelta(hours=1))
        rest_of_round(now, size=2)

        whole_round(now, size=2)

        assert times_of("delivery.ship") == [later + timedelta(hours=1)] * 4

    def test_ask_one_question_while_none_is_due(self, planned, now, django_assert_num_queries):
        whole_round(now)

        with django_assert_num_queries(1):
            sweep(now=now, using="default")

    def test_let_each_part_have_its_turn_where_one_is_always_due(self, planned, now, settings):
        with only_timelines(Delivery, Welcome):
            planned(20)
            whole_round(now)
            [order] = Order.objects.bulk_create([Order()])
            settings.TIMELINE = {"SWEEP_INTERVAL": timedelta(microseconds=1)}

            for _ in range(200):
                sweep(size=2, now=now, using="default")

        assert TimelineRun.objects.for_entity(order).exists()

    def test_pass_over_a_part_whose_table_is_not_there(self, now, caplog):
        with only_timelines(Absent, Welcome):
            whole_round(now)
            with connection.cursor() as cursor:
                cursor.execute("ALTER TABLE testapp_seller RENAME TO testapp_moved")
            Order.objects.bulk_create([Order() for _ in range(5)])

            started = whole_round(now)[2]

        assert started == 5
        assert caplog.text.count("The sweep cannot read absent now") == 1

    def test_are_none_where_the_setting_says_so(self, planned, now, settings, django_assert_num_queries):
        settings.TIMELINE = {"SWEEP_INTERVAL": None}

        with django_assert_num_queries(0):
            assert not sweep(now=now, using="default").left

    def test_refuse_another_sites_database(self, planned, now):
        Identity.objects.update(site="production")

        with pytest.raises(WrongSite):
            sweep(now=now, using="default")


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


class TestTheCommand:
    def test_goes_through_a_round(self, planned, later, now, capsys):
        planned(2)
        whole_round(now)
        Order.objects.update(ships_at=later + timedelta(hours=1))

        call_command("timeline_sweep")

        assert capsys.readouterr().out == "Looked at 2 rows: mended 2 runs, started 0.\n"
        assert times_of("delivery.ship") == [later + timedelta(hours=1)] * 2
