"""Dead letters in a real browser: dark, narrow and read aloud; and a group redriven."""

from __future__ import annotations

import pytest
from django.urls import reverse
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.testapp.models import Order
from timeline.lifecycle import State
from timeline.models import ScheduledTask, ref_of

DEAD = reverse("admin:timeline_scheduledtask_dead")
ONE = "1" * 16


@pytest.fixture
def dead(clock, make_task):
    """Two groups, one with a message that is long."""
    made = []
    for mark, error in ((ONE, f"ConnectionError: {'averylongwordwithoutanyblank' * 5}"), ("2" * 16, "ValueError: no")):
        for order in (Order.objects.create() for _ in range(3)):
            ref = ref_of(order)
            about = {"entity_label": ref.label, "entity_id": ref.id, "task_key": "care.call"}
            made.append(make_task(state=State.DISCARDED, fingerprint=mark, error=error, reason_code="error", **about))
    return made


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
@pytest.mark.parametrize(
    "where", [DEAD, f"{DEAD}?group={ONE}", f"{DEAD}redrive/?group={ONE}"], ids=["groups", "a group", "all of it"]
)
def test_can_be_read(start_browser, staff, dead, width, dark, where):
    browser = start_browser(width=width, dark=dark)
    browser.log_in(staff)

    browser.open(where)

    browser.wait_for(".tl-card")
    assert browser.barriers() == []
    assert browser.width_needed() <= width


def test_redrives_a_group(start_browser, staff, dead):
    browser = start_browser()
    browser.log_in(staff)
    browser.open(DEAD)
    browser.wait_for(".tl-card")

    browser.driver.find_element(By.CSS_SELECTOR, f".tl-counts a[href$='group={ONE}']").click()
    browser.wait_for(".tl-rows")
    browser.driver.find_element(By.CSS_SELECTOR, "a.tl-main").click()
    browser.wait_for("[name=reason]")
    browser.type("[name=reason]", "the line is mended")
    browser.driver.find_element(By.CSS_SELECTOR, ".tl-ask .tl-main").click()
    browser.wait_for_text("3 tasks run again.")

    assert ScheduledTask.objects.filter(previous__fingerprint=ONE, reason="the line is mended").count() == 3


def ask_for_all(browser, staff):
    browser.log_in(staff)
    browser.open(DEAD)
    browser.wait_for(".tl-card")
    browser.driver.find_element(By.CSS_SELECTOR, f".tl-cause:has(a[href$='group={ONE}']) .tl-button").send_keys(
        Keys.ENTER
    )
    browser.wait_for("#id_reason")
    ActionChains(browser.driver).send_keys_to_element(
        browser.driver.find_element(By.ID, "id_reason"), "the server is back", Keys.ENTER
    ).perform()


def test_redrives_all_of_a_group_by_the_keyboard(start_browser, staff, dead):
    browser = start_browser()

    ask_for_all(browser, staff)
    browser.wait_for_text("3 tasks run again.")

    assert ScheduledTask.objects.filter(previous__in=dead).count() == 3
