"""What waits for people in a real browser, and what is said there: light and dark, wide and narrow."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse

from tests.admin.test_people import Complaint
from tests.testapp.models import Order
from timeline.models import TimelineRun
from timeline.shortcuts import emit
from timeline.testing import only_timelines

PEOPLE = reverse("admin:timeline_scheduledtask_people")


@pytest.fixture
def waiting(clock, staff):
    """Some complaints; one is parked, for longer than it may be."""
    with only_timelines(Complaint):
        for number in range(4):
            order = Order.objects.create(note=f"a complaint with a long name, number {number}")
            emit("complaint.made", order)
            if not number:
                emit("complaint.parked", order)
            clock.set(clock.now + timedelta(hours=3))
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
