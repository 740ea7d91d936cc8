"""Acting on all that match in a real browser: by the keyboard, light and dark, wide and narrow, with and without scripts."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.keys import Keys

from tests.admin.conftest import LIST
from timeline.admin import portions
from timeline.models import ScheduledTask


@pytest.mark.parametrize(("width", "dark", "scripts"), [(1280, False, True), (390, True, False)])
def test_cancels_all_that_match(start_browser, staff, orders, monkeypatch, width, dark, scripts):
    monkeypatch.setattr(portions, "PORTION", 2)
    monkeypatch.setattr(portions, "A_TURN", 0)
    browser = start_browser(width=width, dark=dark, scripts=scripts)
    browser.log_in(staff)
    browser.open(f"{LIST}?task=care.greet")
    browser.find(".tl-more").send_keys(Keys.ENTER)
    browser.wait_for_text("3 tasks match")
    assert not scripts or browser.barriers() == []
    assert not scripts or browser.width_needed() <= width

    browser.wait_for_text("Cancel 3 tasks…")
    browser.driver.find_element("link text", "Cancel 3 tasks…").send_keys(Keys.ENTER)
    browser.wait_for("[name=reason]")
    assert not scripts or browser.barriers() == []
    browser.type("[name=reason]", "over" + Keys.ENTER)
    if not scripts:  # A script goes on by itself.
        browser.wait_for("progress")
        browser.click(".tl-main")
    browser.wait_for(".messagelist")

    assert "3 tasks were cancelled." in browser.text
    assert ScheduledTask.objects.filter(task_key="care.greet", state="cancelled").count() == 3
    assert browser.complaints() == []
