"""The page "What if" in a real browser: dark, narrow and read aloud; a later date shown."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse

from tests.features.plans.test_operations_trying import Shipping
from tests.testapp.models import Order
from timeline.shortcuts import emit
from timeline.testing import only_timelines

WHAT_IF = reverse("admin:timeline_scheduledtask_what_if")


@pytest.fixture
def order(clock):
    with only_timelines(Shipping):
        order = Order.objects.create(ships_at=clock.now + timedelta(days=3))
        emit("order.placed", order)
        yield order


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_shows_what_would_be(start_browser, staff, order, width, dark):
    browser = start_browser(width=width, dark=dark)
    browser.log_in(staff)
    browser.open(f"{WHAT_IF}?label=testapp.order&id={order.pk}")
    browser.wait_for("#id_event")
    assert browser.barriers() == []

    browser.type("#id_event", "order.returned")
    browser.click(".tl-main")
    browser.wait_for_text("What would be ahead")

    assert "called off: the run ended by the exit “returned”" in browser.text
    assert browser.barriers() == []
    assert browser.width_needed() <= width
