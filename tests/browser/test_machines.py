"""The pages of an entity with a machine in a real browser, for those who need them dark, narrow or read aloud."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from selenium.webdriver.common.by import By

from tests.admin.conftest import ENTITY, detail
from tests.testapp.models import Order
from timeline import OPEN, STAY, Machine, after, task
from timeline.models import ScheduledTask
from timeline.shortcuts import emit
from timeline.testing import only_timelines


class BookingOfAnAppointment(Machine):
    """With names that are longer than a phone is wide."""

    entity = "testapp.Order"
    starts_on = "booking.created"
    initial = "created"
    table = {
        "created": {"booking.submitted": "authenticating"},
        "authenticating": {"auth.ok": "searching", "auth.one_time_password_required_by_the_portal": "code_required"},
        "code_required": {"code.given": "authenticating", "code.asked_again": STAY},
        "searching": {"slot.booked": "booked"},
        "booked": {},
        OPEN: {"booking.cancelled": "booked"},
    }

    @task(after(days=5))
    def look_whether_it_is_booked(self, order): ...


@pytest.fixture
def booking(clock):
    """One that waits for a code, for the second time."""
    order = Order.objects.create()
    with only_timelines(BookingOfAnAppointment):
        for event in (
            "booking.created",
            "booking.submitted",
            "auth.one_time_password_required_by_the_portal",
            "code.given",
            "auth.one_time_password_required_by_the_portal",
            "code.asked_again",
        ):
            emit(event, order, actor="eva@example.com")
            clock.set(clock.now + timedelta(minutes=7))
        yield order


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_can_be_read_by_anybody(start_browser, staff, booking, width, dark):
    browser = start_browser(width=width, dark=dark)
    browser.log_in(staff)
    for name, path in {
        "entity": f"{ENTITY}?label=testapp.order&id={booking.pk}",
        "task": detail(ScheduledTask.objects.get()),
        "timeline": reverse("admin:timeline_scheduledtask_timeline", args=["booking_of_an_appointment"]),
    }.items():
        browser.open(path)
        browser.wait_for_text("code_required")
        for part in browser.driver.find_elements(By.CSS_SELECTOR, "details"):
            part.click()
        assert browser.width_needed() <= width, name
        assert browser.barriers() == []
        assert browser.complaints() == []
