"""Limits in a real browser: dark, narrow and read aloud; and a closed one opened."""

from __future__ import annotations

import pytest
from django.urls import reverse
from selenium.webdriver.common.by import By

from tests.browser import conftest as browser
from tests.testapp.models import Order
from timeline.lifecycle import State
from timeline.models import Opening, ScheduledTask, ref_of

browsers = browser.browsers  # Fixtures.
clock = browser.clock
staff = browser.staff
start_browser = browser.start_browser

LIMITS = reverse("admin:timeline_scheduledtask_limits")
LONG = f"care.call:{'averylongvaluewithoutanyblank' * 3}"


@pytest.fixture
def limits(clock, make_task):
    """A key that is closed, and one with a long name of which a place is held; tasks wait for both."""
    for key, state in (("payout", State.DISCARDED), (LONG, State.ACTIVE)):
        for slot in (1, 0, 0):
            ref = ref_of(Order.objects.create())
            about = {"entity_label": ref.label, "entity_id": ref.id, "task_key": "care.call"}
            row = make_task(state=state if slot else State.AVAILABLE, attempt=slot, **about)
            ScheduledTask.objects.filter(pk=row.pk).update(limit_key=key, slot=slot, held_until="opened")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_can_be_read(start_browser, staff, limits, width, dark):
    browser = start_browser(width=width, dark=dark)
    browser.log_in(staff)

    browser.open(LIMITS)

    browser.wait_for(".tl-card")
    assert browser.barriers() == []
    assert browser.width_needed() <= width


def test_opens_one_that_is_closed(start_browser, staff, limits):
    browser = start_browser()
    browser.log_in(staff)
    browser.open(LIMITS)
    browser.wait_for("[name=reason]")

    browser.type("[name=reason]", "paid by hand")
    browser.driver.find_element(By.CSS_SELECTOR, ".tl-card .tl-danger").click()
    browser.wait_for(".messagelist")

    assert Opening.objects.get().reason == "paid by hand"
