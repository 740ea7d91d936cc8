"""The page of plans: how rows differ from what a timeline says now, of some runs at a time."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import translation

from tests.admin.conftest import ENTITY, text_of
from tests.testapp.models import Order
from timeline import Machine, Timeline, after, at, never, task
from timeline.features.plans import pages
from timeline.models import ScheduledTask, TimelineRun
from timeline.reading import tallies
from timeline.shortcuts import emit, start
from timeline.testing import only_timelines

PLAN = reverse("admin:timeline_scheduledtask_plan")
INVENTORY = reverse("admin:timeline_scheduledtask_inventory")


class Before(Timeline):
    name = "shop"
    entity = "testapp.Order"

    @task(after(days=10))
    def remind(self, order): ...

    @task(at("ships_at"))
    def ship(self, order): ...

    @task(after(days=20))
    def dropped(self, order): ...

    @task(after(days=30))
    def close(self, order): ...


class Now(Timeline):
    """It reminds later, drops one task, has another, and one is called otherwise."""

    name = "shop"
    entity = "testapp.Order"

    @task(after(days=13))
    def remind(self, order): ...

    @task(at("ships_at"))
    def ship(self, order): ...

    @task(after(days=40))
    def look(self, order): ...

    @task(after(days=30), was="close")
    def close_by_mail(self, order): ...


class Lamp(Machine):
    entity = "testapp.Order"
    starts_on = "lamp.made"
    initial = "lit"
    table = {"lit": {"lamp.out": "out"}, "out": {}}
    timers = {"lit": never}


class Dim(Machine):
    """The same without the state that it is in."""

    name = "lamp"
    entity = "testapp.Order"
    starts_on = "lamp.made"
    initial = "dim"
    table = {"dim": {"lamp.out": "out"}, "out": {}}
    timers = {"dim": never}


@pytest.fixture
def orders(clock):
    orders = [Order.objects.create(ships_at=clock.now + timedelta(days=5)) for _ in range(5)]
    with only_timelines(Before):
        for order in orders:
            start(Before, order)
    return orders


@pytest.fixture
def changed(orders):
    with only_timelines(Now):
        yield orders


class TestTimelines:
    def test_are_named_with_their_open_runs_and_lead_to_their_plans(self, operator, changed):
        page = text_of(operator.get(PLAN))

        assert '<a href="?timeline=shop">shop</a>' in page
        assert '<td class="tl-at" data-name="Open runs">5</td>' in page
        assert PLAN in text_of(operator.get(INVENTORY))

    def test_are_led_to_from_each_plan_and_so_is_the_one_itself(self, operator, changed):
        for given in ({}, {"timeline": "shop"}):
            assert f'<li><a href="{INVENTORY}">Timelines</a></li>' in text_of(operator.get(PLAN, given))

        shop = reverse("admin:timeline_scheduledtask_timeline", args=["shop"])
        assert f'<a href="{shop}">shop</a>' in text_of(operator.get(PLAN, {"timeline": "shop"}))

    def test_that_nobody_declares_are_told(self, operator, orders):
        with only_timelines(Lamp):
            page = text_of(operator.get(PLAN))

        assert "no timeline has this name" in page
        assert "?timeline=shop" not in page


class TestAPlan:
    def test_tells_of_each_task_what_would_become_of_its_rows(self, operator, changed):
        page = text_of(operator.get(PLAN, {"timeline": "shop"}))

        assert "5 runs would change" in page
        assert "This page has looked at all 5 open runs." in page
        for task_key, cells in {
            "shop.remind": ("–", '5 <span class="tl-quiet">+3 d</span>', "–", "–", "–"),
            "shop.look": ("5", "–", "–", "–", "–"),
            "shop.dropped": ("–", "–", "–", "5", "–"),
            "shop.ship": ("–", "–", "–", "–", "5"),
        }.items():
            names = ("New", "Moved", "Cancelled", "Orphaned", "Unchanged")
            row = "".join(
                f'<td class="tl-at" data-name="{name}">{cell}</td>' for name, cell in zip(names, cells, strict=True)
            )
            assert f"<span>{task_key}</span></td>{row}" in page
        assert "renamed: close_by_mail now" in page
        assert "python manage.py timeline_apply shop" in page
        assert "its anchor (start) or its schedule changed" in page
        assert f"{ENTITY}?label=testapp.order&amp;id={changed[0].pk}" in page

    def test_changes_nothing(self, operator, changed):
        before = list(ScheduledTask.objects.order_by("pk").values())

        operator.get(PLAN, {"timeline": "shop"})

        assert operator.post(PLAN, {"timeline": "shop"}).status_code == 405
        assert list(ScheduledTask.objects.order_by("pk").values()) == before

    def test_says_that_all_is_as_it_should_be(self, operator, orders):
        with only_timelines(Before):
            page = text_of(operator.get(PLAN, {"timeline": "shop"}))

        assert "Nothing would change." in page
        assert "Samples" not in page

    def test_looks_at_so_many_and_says_so_and_goes_on(self, operator, changed, monkeypatch):
        monkeypatch.setattr(pages, "MOST", 4)
        first = operator.get(PLAN, {"timeline": "shop"})
        assert "This page has looked at 4 of 5 open runs" in text_of(first)

        rest = text_of(operator.get(PLAN + first.context["next"]))

        assert "This page has looked at 1 of 5 open runs" in rest
        assert "The first ones" in rest
        assert "The next ones" not in rest

    def test_counts_open_runs_up_to_a_limit(self, operator, changed, monkeypatch):
        monkeypatch.setattr(pages, "MOST", 4)
        monkeypatch.setattr(tallies, "MAX_COUNTED", 4)

        assert "4+" in text_of(operator.get(PLAN))
        assert "This page has looked at 4 of 4+ open runs" in text_of(operator.get(PLAN, {"timeline": "shop"}))

    def test_takes_as_many_statements_for_many_runs_as_for_few(
        self, operator, changed, clock, django_assert_max_num_queries, django_assert_num_queries
    ):
        start(Now, Order.objects.create(ships_at=clock.now))
        with django_assert_max_num_queries(12) as few:
            operator.get(PLAN, {"timeline": "shop"})
        for _ in range(50):
            start(Now, Order.objects.create(ships_at=clock.now))

        with django_assert_num_queries(len(few)):
            operator.get(PLAN, {"timeline": "shop"})

    def test_of_a_machine_tells_which_states_its_table_lacks(self, operator, clock):
        with only_timelines(Lamp):
            emit("lamp.made", Order.objects.create())
        with only_timelines(Dim):
            page = text_of(operator.get(PLAN, {"timeline": "lamp"}))

        assert TimelineRun.objects.get().state == "lit"
        assert "lit: 1 – the table does not have it" in page

    @pytest.mark.parametrize("query", [{"timeline": "nothing"}, {"timeline": "shop", "after": "x"}])
    def test_is_not_there_where_there_is_none(self, operator, changed, query):
        assert operator.get(PLAN, query).status_code == 404

    def test_is_for_who_may_see_all_tasks(self, person, browse, changed):
        for query in ({}, {"timeline": "shop"}, {"timeline": "nothing"}):
            assert (
                browse(person(f"mia{len(query)}{query.get('timeline', '')}", "view_payload"))
                .get(PLAN, query)
                .status_code
                == 403
            )

    def test_is_told_in_german(self, operator, changed):
        with translation.override("de"):
            page = text_of(operator.get(PLAN, {"timeline": "shop"}, headers={"accept-language": "de"}))

        assert "ihr Anker (start) oder ihre Planung hat sich geändert" in page
