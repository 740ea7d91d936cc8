"""Redriving many that failed alike, in a real browser."""

from __future__ import annotations

import pytest

from tests.browser import conftest as browser
from tests.browser import test_dead
from tests.browser.test_dead import ask_for_all
from timeline.admin import dead_letters
from timeline.features.bulk_actions.poll import act_in_bulk
from timeline.models import ScheduledTask

browsers = browser.browsers  # Fixtures.
clock = browser.clock
staff = browser.staff
start_browser = browser.start_browser

dead = test_dead.dead  # Fixtures.


@pytest.mark.parametrize("scripts", [True, False])
def test_of_many_leads_to_a_page_that_says_how_far_it_is(start_browser, staff, dead, monkeypatch, clock, scripts):
    monkeypatch.setattr(dead_letters, "PORTION", 2)
    browser = start_browser(scripts=scripts)

    ask_for_all(browser, staff)
    browser.wait_for_text("0 of 3")
    assert not scripts or browser.barriers() == []
    act_in_bulk(now=clock.now, using="default")
    if not scripts:  # Somebody loads the page again.
        browser.driver.refresh()
    browser.wait_for_text("3 of 3")

    assert ScheduledTask.objects.filter(previous__in=dead, reason="the server is back").count() == 3
