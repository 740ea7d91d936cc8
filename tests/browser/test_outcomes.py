"""What will change, in a real browser: shown before it is confirmed, by the keyboard, light and dark, wide and narrow."""

from __future__ import annotations

from datetime import timedelta

import pytest
from selenium.webdriver.common.keys import Keys

from tests.admin.conftest import LIST, detail
from timeline.models import ScheduledTask
from timeline.shortcuts import move

DAY = timedelta(days=1)


def choose_all(browser, action):
    browser.open(f"{LIST}?task=care.greet")
    browser.wait_for("[name=task][type=checkbox]")
    for box in browser.driver.find_elements("css selector", "[name=task][type=checkbox]"):
        browser.driver.execute_script("arguments[0].click()", box)
    browser.driver.execute_script("arguments[0].click()", browser.find(f"button[value={action}]"))
    browser.wait_for("[name=reason]")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_moves_by_so_much_after_a_look(start_browser, staff, orders, width, dark):
    before = dict(ScheduledTask.objects.filter(task_key="care.greet").values_list("pk", "scheduled_at"))
    browser = start_browser(width=width, dark=dark)
    browser.log_in(staff)
    choose_all(browser, "move")
    assert browser.barriers() == []
    browser.type("[name=days]", "2")
    browser.type("[name=hours]", "-3")

    browser.find("[name=look]").send_keys(Keys.ENTER)
    browser.wait_for(".tl-becomes")
    assert len(browser.driver.find_elements("css selector", ".tl-becomes")) == 3
    assert browser.barriers() == []
    assert browser.width_needed() <= width
    browser.type("[name=reason]", "they asked" + Keys.ENTER)
    browser.wait_for(".messagelist")

    assert "3 tasks were moved." in browser.text
    by = 2 * DAY - timedelta(hours=3)
    assert {pk: at + by for pk, at in before.items()} == dict(
        ScheduledTask.objects.filter(task_key="care.greet").values_list("pk", "scheduled_at")
    )
    assert browser.complaints() == []


@pytest.mark.parametrize(("width", "dark"), [(1280, True), (390, False)])
def test_names_who_changed_what_meanwhile(start_browser, staff, orders, width, dark):
    row = ScheduledTask.objects.filter(task_key="care.greet").first()
    browser = start_browser(width=width, dark=dark)
    browser.log_in(staff)
    browser.open(detail(row))
    browser.driver.execute_script("arguments[0].click()", browser.find("button[value=cancel]"))
    browser.wait_for(".tl-becomes")
    move(row, at=row.scheduled_at + DAY, reason="they are away", actor="ben")

    browser.type("[name=reason]", "over" + Keys.ENTER)
    browser.wait_for(".tl-since")

    assert "they are away, by ben" in browser.find(".tl-since").text
    assert browser.barriers() == []
    assert browser.width_needed() <= width
