"""What waits for people in a real browser, and what is said there: light and dark, wide and narrow."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse

from tests.admin.test_people import Complaint
from tests.admin.test_people_deciding import Paying
from tests.features.waits.test_browser import Refunding
from tests.testapp.models import Order
from timeline.models import Event, TimelineRun
from timeline.shortcuts import emit, hold
from timeline.testing import only_timelines

PEOPLE = reverse("admin:timeline_scheduledtask_people")


@pytest.fixture
def waiting(clock, staff):
    """Some complaints, one of them parked for longer than it may be; two refunds, one of them on hold; a step in doubt."""
    with only_timelines(Complaint, Paying, Refunding):
        emit("bill.sent", Order.objects.create())
        with clock.failing():  # The bank never answers.
            clock.run_due()
        for number in range(4):
            order = Order.objects.create(note=f"a complaint with a long name, number {number}")
            emit("complaint.made", order)
            if not number:
                emit("complaint.parked", order)
            clock.set(clock.now + timedelta(hours=3))
            if number > 1:
                emit("refund.asked", order)
        hold(order, reason="a dispute", actor="ada")
        yield


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_can_be_read_and_said(start_browser, staff, waiting, width, dark):
    browser = start_browser(width=width, dark=dark)
    browser.log_in(staff)
    browser.open(PEOPLE)
    browser.wait_for(".tl-card")
    assert browser.barriers() == []
    assert browser.width_needed() <= width

    browser.click("a[href*='event=complaint.settled']")
    browser.wait_for("[name=reason]")
    assert browser.barriers() == []
    assert browser.width_needed() <= width
    browser.type("[name=reason]", "paid back")
    browser.click(".tl-main")
    browser.wait_for(".messagelist")

    assert TimelineRun.objects.filter(state="settled").count() == 1
    assert browser.complaints() == []


@pytest.mark.parametrize("scripts", [True, False])
def test_can_be_decided(start_browser, staff, waiting, scripts):
    browser = start_browser(width=390, scripts=scripts)
    browser.log_in(staff)
    browser.open(PEOPLE)

    browser.press("Approve…")
    browser.wait_for_text("The first decision stands.")
    browser.click(".tl-main")
    browser.wait_for_text("It is approved. The task goes on.")
    browser.open(PEOPLE)
    browser.wait_for(".tl-card")

    assert len(browser.driver.find_elements("name", "action")) == 2  # Approve and reject, of the other one.
    assert Event.objects.filter(name__endswith=".approved").count() == 1
    assert browser.complaints() == []
