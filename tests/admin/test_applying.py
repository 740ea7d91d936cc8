"""The page that applies a plan: it says how many tasks change, asks why, and changes them."""

from __future__ import annotations

import pytest
from django.urls import reverse

from tests.admin import test_plans as plans
from tests.admin.conftest import text_of
from tests.admin.test_plans import PLAN, Dim, Lamp
from tests.testapp.models import Order
from timeline.features.plans import apply_pages
from timeline.lifecycle import ReasonCode, State
from timeline.models import ScheduledTask
from timeline.shortcuts import emit, start
from timeline.testing import only_timelines

changed = plans.changed  # Fixtures.
orders = plans.orders

APPLY = reverse("admin:timeline_scheduledtask_apply")
BOSS = "boss@example.com"
SHOP = f"{APPLY}?timeline=shop"


@pytest.fixture
def boss(person, browse):
    return browse(person("boss", "view_scheduledtask", "apply_plan"))


def seen(client, where=SHOP):
    return client.get(where).context["seen"]


class TestApply:
    def test_says_how_many_tasks_change_and_asks_why(self, boss, changed):
        page = text_of(boss.get(SHOP))

        assert "<strong>15 tasks</strong> change, of 5 runs: 5 new, 5 moved, 5 cancelled." in page
        assert "Change 15 tasks" in page
        assert "python manage.py timeline_apply shop" in page

    def test_is_led_to_from_a_plan_that_has_work_by_who_may(self, boss, operator, changed, orders):
        link = f'href="{APPLY}?timeline=shop"'

        assert link in text_of(boss.get(PLAN, {"timeline": "shop"}))
        assert link not in text_of(operator.get(PLAN, {"timeline": "shop"}))
        with only_timelines(plans.Before):
            assert link not in text_of(boss.get(PLAN, {"timeline": "shop"}))

    def test_lets_the_rows_follow_and_logs_who_and_why(self, boss, changed):
        response = boss.post(SHOP, {"reason": "Version 4 is out.", "seen": seen(boss)}, follow=True)

        assert "15 tasks were changed." in text_of(response)
        assert "Nothing would change." in text_of(response)
        moved = ScheduledTask.objects.filter(task_key="shop.remind")
        assert moved.count() == 5
        for task in moved:
            assert (task.actor, task.reason, task.reason_code) == (BOSS, "Version 4 is out.", ReasonCode.MOVED)
        dropped = ScheduledTask.objects.filter(task_key="shop.dropped")
        assert {(task.state, task.actor, task.reason) for task in dropped} == {
            (State.CANCELLED, BOSS, "Version 4 is out.")
        }

    def test_cancels_open_tasks_in_no_run_that_nothing_defines(self, boss, changed, make_task):
        loose = make_task(run=None, task_key="shop.gone")

        boss.post(SHOP, {"reason": "Version 4 is out.", "seen": seen(boss)})

        loose.refresh_from_db()
        assert (loose.state, loose.actor, loose.reason) == (State.CANCELLED, BOSS, "Version 4 is out.")

    def test_changes_nothing_without_a_reason(self, boss, changed):
        page = text_of(boss.post(SHOP, {"reason": " ", "seen": seen(boss)}))

        assert "Nothing was changed yet." in page
        assert not ScheduledTask.objects.filter(state=State.CANCELLED).exists()

    def test_changes_nothing_if_something_else_would_change_by_now(self, boss, changed, clock):
        before = seen(boss)
        with only_timelines(plans.Before):
            start("shop", Order.objects.create(ships_at=clock.now))

        page = text_of(boss.post(SHOP, {"reason": "Version 4 is out.", "seen": before}))

        assert "Something else would change by now" in page
        assert "<strong>18 tasks</strong>" in page
        assert not ScheduledTask.objects.filter(state=State.CANCELLED).exists()

    def test_changes_nothing_of_too_many_runs_and_says_what_does(self, boss, changed, monkeypatch):
        monkeypatch.setattr(apply_pages, "MOST", 4)

        for response in (boss.get(SHOP), boss.post(SHOP, {"reason": "Now.", "seen": "4 4 4"})):
            page = text_of(response)
            assert "This page changes the tasks of 4 open runs at most" in page
            assert "<code>python manage.py timeline_apply shop</code>" in page
            assert '<form method="post" class="tl-card' not in page
        assert not ScheduledTask.objects.filter(state=State.CANCELLED).exists()

    def test_goes_no_further_where_it_takes_long_and_says_so(self, boss, changed, monkeypatch):
        monkeypatch.setattr(apply_pages, "PATIENCE", -1.0)

        page = text_of(boss.post(SHOP, {"reason": "Now.", "seen": seen(boss)}, follow=True))

        assert "There is more to do: apply it again." in page

    def test_leaves_a_machine_that_has_lost_states_to_the_command(self, boss, clock):
        with only_timelines(Lamp):
            emit("lamp.made", Order.objects.create())
        with only_timelines(Dim):
            page = text_of(boss.get(f"{APPLY}?timeline=lamp"))

        assert "The table of the machine has lost states or moves." in page

    def test_takes_at_most_twelve_statements(self, boss, changed, django_assert_max_num_queries):
        with django_assert_max_num_queries(12):
            boss.get(SHOP)

    def test_says_that_nothing_would_change(self, boss, orders):
        with only_timelines(plans.Before):
            assert "Nothing would change." in text_of(boss.get(SHOP))

    def test_is_not_there_for_a_name_of_nothing(self, boss, changed):
        assert boss.get(f"{APPLY}?timeline=nothing").status_code == 404

    @pytest.mark.parametrize("permissions", [["view_scheduledtask"], ["apply_plan"]])
    def test_is_for_who_may_apply_and_see_all(self, person, browse, changed, permissions):
        client = browse(person("mia", *permissions))

        for response in (client.get(SHOP), client.post(SHOP, {"reason": "Now.", "seen": "5 5 5"})):
            assert response.status_code == 403
        assert not ScheduledTask.objects.filter(state=State.CANCELLED).exists()

    def test_is_told_in_german(self, boss, changed):
        page = text_of(boss.get(SHOP, headers={"accept-language": "de"}))

        assert "15 Aufgaben ändern" in page
