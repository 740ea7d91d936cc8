"""Pages under ASGI in a browser: they are told of changes, and ask where nobody tells them."""

from __future__ import annotations

from tests.admin.conftest import LIST
from tests.browser.test_live import ASKED, greeting_of
from tests.processes import wait_for
from tests.serving import uvicorn_serving
from timeline.shortcuts import cancel

# How often it asks within so many seconds, by the page's own clock: whatever holds up the browser holds up both.
ASKS_WITHIN = f"""
const [seconds, tell] = arguments, before = {ASKED};
setTimeout(() => tell({ASKED} - before), seconds * 1000);
"""
# As long as it is said so, what the page would do by itself after five seconds or more does not come.
NEVER_BY_ITSELF = """
const later = window.setTimeout;
window.setTimeout = (act, after, ...given) => (window.isTold && after > 5000 ? 0 : later(act, after, ...given));
window.isTold = true;
"""


def test_are_told_and_hardly_ask_and_ask_when_nobody_tells(start_browser, staff, orders):
    browser = start_browser()

    def asks_within(seconds):
        return browser.driver.execute_async_script(ASKS_WITHIN, seconds)

    with uvicorn_serving() as address:
        browser.base = address
        browser.log_in(staff)
        browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": NEVER_BY_ITSELF})
        browser.open(LIST)
        browser.wait_for("[data-timeline-told]")
        wait_for(lambda: not asks_within(1.5), "the end of its questions")
        assert not asks_within(1.5)

        assert "4 tasks on this page" in browser.text
        cancel(greeting_of(orders[0]), reason="elsewhere")
        browser.wait_for_text("3 tasks on this page")
        browser.driver.execute_script("window.isTold = false")

    browser.wait_for_text("The site does not answer")
    assert asks_within(3) <= 2  # It asks less and less often.
    with uvicorn_serving(port=int(address.rpartition(":")[2])):
        cancel(greeting_of(orders[1]), reason="elsewhere")
        browser.wait_for_text("2 tasks on this page")
        assert "The site does not answer" not in browser.text
