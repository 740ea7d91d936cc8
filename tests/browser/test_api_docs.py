"""The page to read and try the API, in a browser."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_keeps_nobody_out(start_browser, staff, width, dark):
    """Nothing for axe-core, level A or AA, whatever is opened in it; no sideways scrolling; the console is silent."""
    browser = start_browser(width=width, dark=dark)
    browser.log_in(staff)
    browser.open("/api/v1/docs/")
    browser.wait_for(".opblock")

    assert browser.barriers() == []
    browser.click(".opblock button.opblock-summary-control")
    browser.wait_for(".opblock.is-open .responses-wrapper")

    assert browser.barriers() == []
    browser.click(".opblock.is-open .try-out__btn")
    browser.wait_for(".opblock.is-open .execute")

    assert browser.barriers() == []
    browser.click(".btn.authorize")
    browser.wait_for(".dialog-ux .auth-container")

    assert browser.barriers() == []
    assert browser.width_needed() <= width
    assert browser.complaints() == []
    assert browser.strangers() == set()
