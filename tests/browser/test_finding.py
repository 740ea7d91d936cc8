"""Finding somebody in a real browser: by the key "/", dark, narrow and read aloud."""

from __future__ import annotations

import pytest
from django.urls import reverse
from selenium.webdriver.common.action_chains import ActionChains

from tests.testapp.models import Order
from timeline.models import ref_of

FIND = reverse("admin:timeline_scheduledtask_find")


@pytest.fixture
def several(clock, make_task):
    for number in (4711, 47110):
        ref = ref_of(Order.objects.create(pk=number))
        make_task(entity_label=ref.label, entity_id=ref.id, task_key="care.call")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_can_be_read(start_browser, staff, several, width, dark):
    browser = start_browser(width=width, dark=dark)
    browser.log_in(staff)

    browser.open(f"{FIND}?words=example")

    browser.wait_for(".tl-find")
    assert browser.barriers() == []
    assert browser.width_needed() <= width


def test_a_key_leads_to_the_box_and_what_is_found_alone_is_opened(start_browser, staff, several):
    browser = start_browser()
    browser.log_in(staff)
    browser.open(FIND)
    browser.wait_for(".tl-find")

    ActionChains(browser.driver).send_keys("/4711\n").perform()

    browser.wait_for_address("id=4711")
    browser.wait_for(".tl-axis, .tl-table, .tl-card")
