"""The pages of webhooks in a real browser: light and dark, wide and narrow, English and German."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse

from tests.webhooks.conftest import _loopback, _server, endpoint_for, receiver  # noqa: F401 (fixtures)
from tests.webhooks.receiving import Told
from tests.webhooks.test_sending import deliver, told_order
from timeline.testing import only_timelines
from timeline.webhooks.disabling import disable
from timeline.webhooks.models import Delivery, Disabled, SenderSign


def at(kind, name, *args):
    return reverse(f"admin:timeline_webhooks_{kind}_{name}", args=args)


@pytest.fixture
def endpoints(clock, staff, receiver, endpoint_for):  # noqa: F811
    """One that fails, one that is disabled, and deliveries that arrived, failed and wait, for which there is no sender."""
    with only_timelines(Told):
        long = "/hooks/" + "a-receiver-with-a-long-address/" * 6
        good = endpoint_for("told", "task.discarded", path=long, description="Bookkeeping of the branch in Wien")
        bad = endpoint_for("told.told.asked", path=f"/bad{long}")
        receiver.answer = lambda request: (500, b"x" * 2000) if "bad" in request.path else (200, b"<b>thank you</b>")
        for _order in range(3):
            told_order("told.asked", "told.answered")
            deliver()
        gone = endpoint_for("told", path="/gone")
        disable(gone, Disabled.GONE, now=clock.now, using="default")
        told_order("told.asked")
        clock.set(clock.now + timedelta(minutes=30))
        SenderSign.objects.all().delete()
        yield {"good": good, "bad": bad}


@pytest.mark.parametrize(("width", "dark", "language"), [(1280, False, "en"), (390, True, "de"), (390, False, "en")])
def test_can_be_read_by_anybody(start_browser, staff, endpoints, width, dark, language):
    browser = start_browser(width=width, dark=dark)
    browser.driver.execute_cdp_cmd(
        "Network.setExtraHTTPHeaders", {"headers": {"Accept-Language": f"{language},en;q=0.1"}}
    )
    browser.log_in(staff)
    failed = Delivery.objects.filter(endpoint=endpoints["bad"], attempts__gt=0).first()
    paths = {
        "endpoints": at("endpoint", "changelist"),
        "add": at("endpoint", "add"),
        "change": at("endpoint", "change", endpoints["good"].pk),
        "change-bad": at("endpoint", "change", endpoints["bad"].pk),
        "deliveries": at("delivery", "changelist"),
        "delivery": at("delivery", "change", failed.pk),
        "replay": at("endpoint", "replay", endpoints["good"].pk),
    }
    found = {}
    browser.open(paths["endpoints"])
    assert below(browser, ".object-tools a", ".tl-alarm")
    for name, path in paths.items():
        browser.open(path)
        look(browser, f"{name}-{width}-{language}", found, width)
    browser.driver.execute_script("document.querySelector('[name=since]').value = '2026-03-01T00:00'")
    browser.choose("[name=which]", "all")
    browser.click("#content-main .tl-main")
    browser.wait_for("[name=confirmed]")
    look(browser, f"confirm-{width}-{language}", found, width)

    browser.open(at("endpoint", "changelist"))
    browser.click(f"[name=_selected_action][value='{endpoints['good'].pk}']")
    browser.choose("[name=action]", "rotate_secret")
    browser.click("[name=index]")
    browser.wait_for("code")
    look(browser, f"secret-{width}-{language}", found, width)

    assert {name: each for name, each in found.items() if each} == {}


def below(browser, lower, upper):
    """Whether nothing of the lower one is over the upper one."""
    return browser.find(lower).rect["y"] >= browser.find(upper).rect["y"] + browser.find(upper).rect["height"]


def look(browser, name, found, width):
    """Note what is wrong. What axe complains of itself, at the ``@import`` in Django's ``forms.css``, is not the page's."""
    needed = browser.width_needed()
    found[name] = browser.complaints() + ([f"{needed} wide"] if needed > width else []) + browser.barriers()
    browser.complaints()
