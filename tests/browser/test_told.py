"""Pages under ASGI in a browser: they are told of changes, and ask where nobody tells them."""

from __future__ import annotations

import time

from tests.admin.conftest import LIST
from tests.browser.test_live import greeting_of
from tests.serving import uvicorn_serving
from timeline.shortcuts import cancel

ASKED = "return performance.getEntriesByType('resource').filter((each) => each.initiatorType === 'fetch').length"


def test_are_told_and_hardly_ask_and_ask_when_nobody_tells(start_browser, staff, orders):
    browser = start_browser()
    with uvicorn_serving() as address:
        browser.base = address
        browser.log_in(staff)
        browser.open(LIST)
        browser.wait_for("[data-timeline-told]")
        time.sleep(1.5)
        before = browser.driver.execute_script(ASKED)
        time.sleep(1.5)
        assert browser.driver.execute_script(ASKED) == before

        assert "4 tasks on this page" in browser.text
        cancel(greeting_of(orders[0]), reason="elsewhere")
        committed = time.monotonic()
        browser.wait_for_text("3 tasks on this page")
        assert time.monotonic() - committed < 10  # Without being told it would ask only after half a minute.

    browser.wait_for_text("The site does not answer")
    before = browser.driver.execute_script(ASKED)
    time.sleep(3)
    assert browser.driver.execute_script(ASKED) - before <= 2  # It asks less and less often.
    with uvicorn_serving(port=int(address.rpartition(":")[2])):
        cancel(greeting_of(orders[1]), reason="elsewhere")
        browser.wait_for_text("2 tasks on this page")
        assert "The site does not answer" not in browser.text
