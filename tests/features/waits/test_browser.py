"""Deciding about an approval in a real browser; and its page for those who need it dark, narrow or read aloud."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.admin.conftest import detail
from tests.browser import conftest as browser
from tests.testapp.models import Order
from timeline import Timeline, approval, every, task
from timeline.models import ScheduledTask
from timeline.shortcuts import emit
from timeline.testing import only_timelines

browsers = browser.browsers  # Fixtures.
clock = browser.clock
staff = browser.staff
start_browser = browser.start_browser


class Refunding(Timeline):
    entity = "testapp.Order"
    starts_on = "refund.asked"

    @task(approval("refund-of-an-order-of-last-year", by="testapp.approve_refunds_of_orders", within=timedelta(days=2)))
    def refund(self, order):
        return self.awaited.actor if self.awaited else "nobody"

    @task(every(days=7, most=8))
    def nudge(self, order): ...


@pytest.fixture
def asked(clock):
    """A refund that was asked for."""
    with only_timelines(Refunding):
        emit("refund.asked", Order.objects.create())
        yield ScheduledTask.objects.get(task_key="refunding.refund")


def test_approves(start_browser, staff, asked, clock):
    browser = start_browser()
    browser.log_in(staff)
    browser.open(detail(asked))
    browser.wait_for_text("Waits for a decision")

    browser.press("Approve…")
    browser.wait_for_text("The first decision stands.")
    browser.click(".tl-main")

    browser.wait_for_text("It is approved. The task goes on.")
    clock.run_due()
    asked.refresh_from_db()
    assert asked.result == "eva@example.com"
    assert browser.complaints() == []


def test_rejects_with_a_reason(start_browser, staff, asked, clock):
    browser = start_browser()
    browser.log_in(staff)
    browser.open(detail(asked))

    browser.press("Reject…")
    browser.click(".tl-main")
    browser.wait_for(".tl-errors")
    browser.type("[name=reason]", "a fraud")
    browser.click(".tl-main")

    browser.wait_for_text("It is rejected. The task goes on.")
    assert browser.complaints() == []


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
@pytest.mark.parametrize("name", ["refund", "nudge"])
def test_is_for_everybody(start_browser, staff, asked, name, width, dark):
    browser = start_browser(width=width, dark=dark)
    browser.log_in(staff)
    browser.open(detail(ScheduledTask.objects.get(task_key=f"refunding.{name}")))
    browser.wait_for(".tl-story")

    assert browser.complaints() == []
    assert browser.barriers() == []
    assert browser.width_needed() <= width
