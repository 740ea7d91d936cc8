"""Sweep: what no signal saw is found, a bounded part at a time, and mended."""

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import connection

from tests.operations.sweeps import Delivery, Welcome, rest_of_round, times_of, whole_round
from tests.testapp.models import Order
from timeline import Timeline, after, created, task
from timeline.clocks import MachineTime
from timeline.exceptions import WrongSite
from timeline.features.sweep.verbs import sweep
from timeline.models import Identity, Sweep, TimelineRun
from timeline.testing import only_timelines


class Absent(Timeline):
    entity = "testapp.Seller"
    starts_on = created()

    @task(after(days=1))
    def look(self, seller): ...


@pytest.fixture(autouse=True)
def _only_these(db, clock, now):
    clock.set(now)
    with only_timelines(Delivery):
        yield


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


class TestTheCommand:
    def test_goes_through_a_round(self, planned, later, now, capsys):
        planned(2)
        whole_round(now)
        Order.objects.update(ships_at=later + timedelta(hours=1))

        call_command("timeline_sweep")

        assert capsys.readouterr().out == "Rows looked at: 2. Runs mended: 2, started: 0.\n"
        assert times_of("delivery.ship") == [later + timedelta(hours=1)] * 2
