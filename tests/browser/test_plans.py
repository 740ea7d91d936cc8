"""The page of plans in a real browser: light, dark, narrow and in German."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse

from tests.admin.test_plans import Before, Now
from tests.testapp.models import Order
from timeline.shortcuts import start
from timeline.testing import only_timelines

INVENTORY = reverse("admin:timeline_scheduledtask_inventory")


@pytest.fixture
def orders(clock):
    with only_timelines(Before):
        for _ in range(5):
            start(Before, Order.objects.create(ships_at=clock.now + timedelta(days=5)))
    with only_timelines(Now):
        yield


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_leads_from_the_inventory_to_what_would_change(start_browser, staff, orders, width, dark):
    browser = start_browser(width=width, dark=dark)
    browser.log_in(staff)
    browser.open(INVENTORY)
    browser.click('a[href$="/plan/"]')
    browser.wait_for('a[href="?timeline=shop"]')
    assert browser.barriers() == []

    browser.click('a[href="?timeline=shop"]')
    browser.wait_for_text("5 runs would change")

    assert "python manage.py timeline_apply shop" in browser.text
    assert browser.barriers() == []
    assert browser.width_needed() <= width
