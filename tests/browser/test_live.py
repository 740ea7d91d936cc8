"""Live pages in a browser: they flip, and leave alone what somebody has begun."""

from __future__ import annotations

import pytest
from django.urls import reverse

from tests.admin.conftest import ENTITY, LIST
from timeline.models import ScheduledTask, ref_of
from timeline.shortcuts import cancel, schedule

# How often the page has asked, and how often it had when it showed these words.
ASKED = "performance.getEntriesByType('resource').filter((each) => each.initiatorType === 'fetch').length"
NOTE_WHEN = f"""
const note = () => document.body.textContent.includes(arguments[0]) && (window.askedThen ??= {ASKED});
new MutationObserver(note).observe(document.body, {{ subtree: true, childList: true, characterData: true }});
"""


def greeting_of(order):
    return ScheduledTask.objects.get(task_key="care.greet", entity_id=str(order.pk))


def test_flip_and_leave_alone_what_was_begun(start_browser, staff, orders):
    browser = start_browser()
    browser.log_in(staff)
    ref, row = ref_of(orders[0]), greeting_of(orders[0])
    browser.open(f"{ENTITY}?label={ref.label}&id={ref.id}")
    browser.wait_for_text("Pause updates")
    browser.driver.execute_script("document.querySelector('.tl-card a').focus(); window.stayed = true")
    browser.driver.execute_script(NOTE_WHEN, "elsewhere")
    cancel(row, reason="elsewhere")
    before = browser.driver.execute_script(f"return {ASKED}")
    browser.wait_for_text("elsewhere")
    asked = browser.driver.execute_script("return window.askedThen") - before
    assert asked <= 2  # One question may have been under way already; the next one is asked a second later.
    assert browser.driver.execute_script("return window.stayed && document.activeElement.tagName") == "A"
    assert browser.barriers() == []

    browser.open(LIST)
    browser.click(f"[name=task][value='{greeting_of(orders[1]).pk}']")
    cancel(greeting_of(orders[2]), reason="elsewhere")
    browser.wait_for_text("There is something new.")
    assert "3 tasks on this page" in browser.text
    assert browser.find("input:checked").get_attribute("value") == str(greeting_of(orders[1]).pk)
    browser.click("input:checked")
    browser.wait_for_text("2 tasks on this page")

    browser.open(reverse("admin:timeline_scheduledtask_holds"))
    browser.wait_for_text("Pause updates")
    assert browser.complaints() == []


@pytest.mark.urls("tests.browser.two_parts")
def test_of_a_page_with_two_parts_keep_each_its_own_and_follow_their_number(start_browser, orders, clock):
    browser, tasks = start_browser(), ScheduledTask.objects.for_entity(orders[0]).open()
    schedule("care.call", orders[0], at=clock.now, payload={"about": "a lid"})
    browser.open(f"/parts/{orders[0].pk}/")
    browser.wait_for_text("Pause updates")
    assert browser.text == "ahead: 3\nPause updates\nover: 0"

    cancel(tasks.first(), reason="so")
    browser.wait_for_text("ahead: 2")
    assert browser.text == "ahead: 2\nPause updates\nover: 1"

    cancel(tasks.first(), reason="so")
    browser.wait_for_text("ahead: 1")
    assert browser.text == "ahead: 1\nPause updates"
