"""Holds in a real browser: a customer put on hold and released, dark, narrow and read aloud."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.admin.conftest import ENTITY
from tests.browser import conftest as browser
from tests.testapp.models import Order
from timeline.features.holds.verbs import park
from timeline.models import Hold, ref_of
from timeline.shortcuts import hold, release

browsers = browser.browsers  # Fixtures.
clock = browser.clock
staff = browser.staff
start_browser = browser.start_browser

HOLDS = reverse("admin:timeline_scheduledtask_holds")


@pytest.fixture
def order(clock, make_task):
    """With a task ahead."""
    order = Order.objects.create()
    ref = ref_of(order)
    make_task(entity_label=ref.label, entity_id=ref.id, task_key="care.call")
    return order


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_can_be_read(start_browser, staff, order, width, dark):
    hold(order, reason="averylongreasonwithoutanyblank" * 6, actor="ada")
    hold(timeline="care", reason="moving", then="shift")
    browser = start_browser(width=width, dark=dark)
    browser.log_in(staff)

    for path in (HOLDS, f"{ENTITY}?label=testapp.order&id={order.pk}"):
        browser.open(path)
        browser.wait_for(".tl-held-note")
        assert browser.barriers() == []
        assert browser.width_needed() <= width


LINES = """
    const range = document.createRange();
    range.selectNodeContents(arguments[0]);
    return new Set([...range.getClientRects()].map((each) => Math.round(each.bottom))).size;
"""


def test_breaks_no_word_of_one_that_is_over(start_browser, staff, order):
    hold(
        task="care.call", reason="a reason that is as long as it may be so that it takes all the room " * 2, actor="ada"
    )
    release(Hold.objects.get(), actor="benjamin")
    browser = start_browser()
    browser.log_in(staff)

    browser.open(HOLDS)
    browser.wait_for(".tl-over")

    cells = browser.driver.find_elements(By.CSS_SELECTOR, ".tl-over td")
    assert [browser.driver.execute_script(LINES, cells[number]) for number in (0, 3, 5)] == [1, 1, 1]


def test_puts_a_customer_on_hold_and_releases_them(start_browser, staff, order):
    browser = start_browser()
    browser.log_in(staff)
    browser.open(f"{ENTITY}?label=testapp.order&id={order.pk}")
    browser.wait_for(".tl-card")

    browser.follow("Hold…")
    browser.wait_for("#id_reason")
    assert browser.barriers() == []
    browser.type("#id_reason", "a dispute")
    browser.click(".tl-main")
    browser.wait_for(".tl-held-note")
    held = Hold.objects.get()
    browser.driver.find_element(By.CSS_SELECTOR, ".tl-held-note .tl-button").click()
    browser.wait_for(".tl-becomes")
    assert browser.barriers() == []
    browser.click(".tl-main")
    browser.wait_for_text("It is released.")

    held.refresh_from_db()
    assert held.released_by == staff.get_username()


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_releases_what_a_brake_has_stopped_for_a_reason(start_browser, staff, order, clock, width, dark):
    held = park("care.call", most=100, within=timedelta(hours=1), now=clock.now, using="default")
    hold(order, reason="a dispute", actor="ada")
    browser = start_browser(width=width, dark=dark)
    browser.log_in(staff)
    browser.open(HOLDS)
    browser.driver.find_element(By.CSS_SELECTOR, ".tl-alarm .tl-button").click()
    browser.wait_for(".tl-becomes")
    assert browser.barriers() == []
    assert browser.width_needed() <= width

    browser.type("#id_reason", "they have left" + Keys.ENTER)
    browser.wait_for_text("It is released.")

    held.refresh_from_db()
    assert held.release_reason == "they have left"
    assert browser.barriers() == []
