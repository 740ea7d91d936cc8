"""The pages of timelines in a real browser: light and dark, wide and narrow, by keyboard, and without JavaScript."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from selenium.webdriver.common.by import By

from timeline import Timeline, after, before, created, each_of, every, task, wait_for, weekly
from timeline.lifecycle import State
from timeline.testing import only_timelines

INVENTORY = reverse("admin:timeline_scheduledtask_inventory")


def has_never_been_paid_for_by_anybody_of_the_company(_order):
    return False


class RenewalOfASubscription(Timeline):
    """With names that are longer than a phone is wide, and all kinds of tasks."""

    entity = "testapp.Order"
    starts_on = ("order.placed_by_somebody_who_has_a_subscription_already", created())
    exits = {"order.cancelled_by_somebody_who_has_a_subscription": "cancelled_by_the_customer"}

    @task(after(days=3), title="Remind", unless=has_never_been_paid_for_by_anybody_of_the_company)
    def remind_the_customer_that_the_subscription_ends(self, order):
        """Write to them, and say what becomes of what they have made with it."""

    @task(after(remind_the_customer_that_the_subscription_ends))
    def tell_the_team(self, order): ...

    @task(each_of(tell_the_team))
    def tell_one(self, order): ...

    @task(every(days=7), title="Look")
    def look(self, order): ...

    @task(wait_for("order.paid", within=timedelta(days=30)))
    def thank(self, order): ...

    @task(before("ships_at", days=2))
    def pack(self, order): ...

    @task()
    def call(self, order): ...


class Report(Timeline):
    """Comes by the clock."""

    starts_on = weekly("mon 06:00")

    @task(after())
    def report(self): ...


RENEWAL = reverse("admin:timeline_scheduledtask_timeline", args=["renewal_of_a_subscription"])
KEY = "renewal_of_a_subscription.remind_the_customer_that_the_subscription_ends"


@pytest.fixture(autouse=True)
def _rows(clock, make_task):
    with only_timelines(RenewalOfASubscription, Report):
        make_task(task_key=KEY, scheduled_at=clock.now - timedelta(hours=5))
        make_task(task_key=KEY, state=State.DISCARDED, reason_code="error", finished_at=clock.now)
        for code in ("exit", "guard", "operator", "superseded", "entity_gone"):
            make_task(task_key=KEY, state=State.CANCELLED, reason_code=code)
        yield


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_can_be_read_by_anybody(start_browser, staff, width, dark):
    browser = start_browser(width=width, dark=dark)
    browser.log_in(staff)
    for path in (INVENTORY, RENEWAL, reverse("admin:timeline_scheduledtask_timeline", args=["report"])):
        browser.open(path)
        browser.wait_for_text("Comes by the clock." if path != RENEWAL else "Write to them")
        assert browser.width_needed() <= width, path
        assert browser.barriers() == []
        assert browser.complaints() == []


def test_lead_from_a_count_in_the_picture_to_its_tasks_without_javascript(start_browser, staff):
    browser = start_browser(scripts=False)
    browser.log_in(staff)
    browser.open(INVENTORY)

    browser.follow("renewal_of_a_subscription")
    browser.click(".tl-line a[href*='reason=guard']")

    browser.wait_for(".tl-rows")
    assert "?task=" in browser.driver.current_url
    assert len(browser.driver.find_elements(By.CSS_SELECTOR, ".tl-rows tbody tr")) == 1
    assert "condition" in browser.find(".tl-chips").text
