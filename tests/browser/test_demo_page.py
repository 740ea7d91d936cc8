"""The page of the demo in a browser: two pages beside each other, and buttons that load neither anew by themselves."""

from __future__ import annotations

import pytest
from django.urls import reverse

from project.accounts.models import User
from project.accounts.services import sign_up
from project.demo.clock import SettableClock, is_standing
from project.demo.mailing import sign_of_outage
from project.demo.operators import make_operator
from timeline.testing import only_timelines

DEMO = reverse("demo")


@pytest.fixture
def demo(start_browser, transactional_db, settings, monkeypatch, tmp_path, now):
    """The page, opened with the key."""
    settings.DATA_DIR, settings.X_FRAME_OPTIONS = tmp_path, "SAMEORIGIN"
    monkeypatch.setenv("DEMO_KEY", "printed")
    monkeypatch.setenv("DEMO_CLOCK", "")
    SettableClock(tmp_path / "clock", seconds_per_day=12, begin=now)
    make_operator(now=now)
    with only_timelines():
        sign_up("ada@example.com", "ada.example", now=now)
    browser = start_browser()
    browser.open(f"{DEMO}?key=printed")
    browser.wait_for("iframe[name=operator]")
    return browser


def test_has_both_pages_and_nothing_to_complain_of(demo):
    for name, said in (("customer", "ada.example"), ("operator", "ada@example.com")):
        demo.driver.switch_to.frame(name)
        demo.wait_for_text(said)
        demo.driver.switch_to.default_content()

    assert demo.barriers() == []
    assert demo.complaints() == []


def test_is_as_wide_as_a_phone_and_readable_in_the_dark(demo, start_browser):
    phone = start_browser(width=390, dark=True)
    phone.open(f"{DEMO}?key=printed")
    phone.wait_for("iframe[name=operator]")

    assert phone.width_needed() <= 390
    assert phone.barriers() == []


def test_buttons_do_what_they_say_and_leave_the_other_page(demo):
    demo.driver.execute_script("window.same = true")

    demo.press("Pause")
    demo.wait_for("[value=stand][aria-pressed=true]")
    demo.press("Mail server down")
    demo.wait_for(".deeds [aria-pressed=true]")
    demo.press("Ada pays")
    demo.wait_for_text("Ada has paid")

    assert is_standing()
    assert sign_of_outage().exists()
    assert User.objects.get(email="ada@example.com").payment_configured_at
    assert demo.driver.execute_script("return window.same")
    demo.driver.switch_to.frame("customer")
    demo.wait_for_text("Payment is configured")
