"""The admin in a real browser: what an operator does there, with scripts and without."""

from __future__ import annotations

import pytest
from django.urls import reverse

from tests.admin.conftest import ENTITY, LIST, detail
from timeline.models import ScheduledTask
from timeline.shortcuts import cancel, explain


def greeting_of(order):
    return ScheduledTask.objects.for_entity(order).get(task_key="care.greet", revision=1)


def see_through_a_day(browser, orders):
    """Filter, search, cancel with a reason, see it in the log, redrive."""
    order = orders[1]
    browser.open(LIST)
    browser.choose("#tl-task", "care.greet")
    browser.click(".tl-go button")
    browser.wait_for(".tl-chips")
    assert "care.call" not in browser.find(".tl-rows").text

    browser.type("#tl-q", f"testapp.order {order.pk}")
    browser.click(".tl-go button")
    browser.wait_for_text("1 task on this page")
    browser.click("tbody [type=checkbox]")
    browser.click("button[value=cancel]")
    browser.type("#id_reason", "the customer called")
    browser.click(".tl-main")
    browser.wait_for(".messagelist .success")
    assert "1 task was cancelled." in browser.text

    browser.open(detail(greeting_of(order)))
    assert "the customer called" in browser.text
    assert "eva@example.com" in browser.text

    browser.click("button[value=redrive]")
    browser.type("#id_reason", "the customer called again")
    browser.click(".tl-main")
    browser.wait_for(".messagelist .success")
    assert ScheduledTask.objects.get(task_key="care.greet", revision=2).actor == "eva@example.com"


class TestADay:
    def test_goes_well_with_scripts(self, start_browser, staff, orders):
        browser = start_browser()
        browser.log_in(staff)

        see_through_a_day(browser, orders)

        assert browser.complaints() == []
        assert browser.strangers() == set()

    def test_goes_well_without(self, start_browser, staff, orders):
        browser = start_browser(scripts=False)
        browser.log_in(staff)

        see_through_a_day(browser, orders)

        assert browser.strangers() == set()

    def test_is_told_by_rows_that_move_on_their_own(self, start_browser, staff, orders):
        """The list follows what happens elsewhere, without a reload; it rests while somebody chooses."""
        browser = start_browser()
        browser.log_in(staff)
        browser.open(LIST)
        browser.wait_for_text("4 tasks on this page")

        cancel(greeting_of(orders[0]), reason="elsewhere")
        browser.wait_for_text("3 tasks on this page")
        assert browser.complaints() == []

    def test_leads_from_an_account_to_its_timeline(self, start_browser, staff):
        browser = start_browser()
        browser.log_in(staff)
        browser.open(reverse("admin:accounts_user_change", args=[staff.pk]))

        browser.click(".timelinelink")

        browser.wait_for_text("Timeline of eva@example.com")
        assert browser.complaints() == []


class TestEveryPage:
    @pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
    @pytest.mark.parametrize("width", [1280, 390], ids=["desk", "phone"])
    def test_keeps_nobody_out(self, start_browser, staff, orders, width, dark):
        """Nothing serious for axe-core, no sideways scrolling, no complaint in the console."""
        cancel(greeting_of(orders[1]), reason="the customer called")
        browser = start_browser(width=width, dark=dark)
        browser.log_in(staff)
        entity = f"{ENTITY}?label=testapp.order&id={orders[0].pk}"
        call = ScheduledTask.objects.get(task_key="care.call")

        for path in (LIST, f"{LIST}?state=all&timeline=care&q=17", f"{LIST}?state=all", detail(call), entity):
            browser.open(path)
            assert browser.barriers() == []
            assert browser.width_needed() <= width
        browser.open(detail(call))
        browser.click("button[value=move]")
        browser.wait_for("#id_at")
        assert browser.barriers() == []
        assert browser.complaints() == []

    def test_tells_the_same_story_as_the_command(self, start_browser, staff, orders):
        browser = start_browser()
        browser.log_in(staff)
        call = ScheduledTask.objects.get(task_key="care.call")

        browser.open(detail(call))

        for line in explain(call).splitlines():
            assert line in browser.text
