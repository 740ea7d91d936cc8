"""Bulk actions in a real browser: begun from all that match, watched while polls do it, and stopped."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from selenium.webdriver.common.keys import Keys

from tests.admin.conftest import LIST
from tests.browser import conftest as browser
from tests.features.bulk_actions.bulk import bulk_action
from timeline.admin import act_on_all
from timeline.features.bulk_actions.poll import act_in_bulk, begin_bulk
from timeline.models import ScheduledTask

browsers = browser.browsers  # Fixtures.
clock = browser.clock
orders = browser.orders
staff = browser.staff
start_browser = browser.start_browser

BULK = reverse("admin:timeline_scheduledtask_bulk")
ALL_OF_IT = f"{reverse('admin:timeline_scheduledtask_matching')}?task=care.greet&action=cancel"


def page_of(bulk):
    return reverse("admin:timeline_scheduledtask_bulk_action", args=[bulk.pk])


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_can_be_read(start_browser, staff, orders, clock, width, dark):
    long = {"timeline": "renewal_of_a_subscription", "q": "averylongsearchwithoutanyblank" * 5, "state": ["scheduled"]}
    columns = {"asker": staff.pk, "created_at": clock.now}
    done = bulk_action("move", at=clock.now + timedelta(days=3), **columns)
    done.matched, done.done, done.skipped, done.ended_at = 2500, 2488, {"changed": 9, "forbidden": 3}, clock.now
    stopped = bulk_action("cancel", filters=long, **columns)
    stopped.is_stopped, stopped.stopped_by, stopped.ended_at, stopped.matched = True, "ben", clock.now, 1200
    for bulk in (done, stopped):
        bulk.save(force_insert=True)
    running = bulk_action("redrive", filters={"task": "care.greet"}, spread=timedelta(hours=1), **columns)
    running.matched, running.done = 4200, 1400
    running.save(force_insert=True)
    browser = start_browser(width=width, dark=dark)
    browser.log_in(staff)

    for path in (BULK, page_of(running), page_of(done), page_of(stopped)):
        browser.open(path)
        browser.wait_for(".tl-card")
        assert browser.barriers() == []
        assert browser.width_needed() <= width
    assert browser.complaints() == []


@pytest.mark.parametrize("scripts", [True, False])
def test_is_begun_watched_and_found_in_the_list(start_browser, staff, orders, clock, monkeypatch, scripts):
    monkeypatch.setattr(act_on_all, "MANY", 2)
    browser = start_browser(scripts=scripts)
    browser.log_in(staff)
    browser.open(ALL_OF_IT)
    assert not scripts or browser.barriers() == []

    browser.type("[name=reason]", "over" + Keys.ENTER)
    browser.wait_for_text("0 of 3")
    act_in_bulk(now=clock.now, using="default")
    if scripts:  # Else somebody loads the page again.
        browser.wait_for_text("3 of 3")
    browser.open(LIST)
    browser.follow("Bulk actions")
    browser.wait_for_text("Cancel 3 tasks")

    assert "3 of 3" in browser.text
    assert ScheduledTask.objects.filter(task_key="care.greet", state="cancelled").count() == 3


def test_is_stopped(start_browser, staff, orders, clock):
    bulk = bulk_action("cancel", asker=staff.pk, filters={"task": "care.greet"})
    begin_bulk(bulk, ScheduledTask.objects.all(), using="default")
    browser = start_browser()
    browser.log_in(staff)
    browser.open(page_of(bulk))

    browser.click(".tl-danger")
    browser.wait_for_text("It is stopped. What is done stays.")

    bulk.refresh_from_db()
    assert bulk.stopped_by == staff.get_username()
