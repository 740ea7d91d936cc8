"""Deciding about a step in a real browser; and its pages for those who need them dark, narrow or read aloud."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.admin.conftest import detail
from tests.browser import conftest as browser
from tests.resting import Billing, Changed, Settling, half_settled, recorded, run_once
from tests.testapp.models import Order
from timeline.models import StepRecord
from timeline.testing import only_timelines

browsers = browser.browsers  # Fixtures.
clock = browser.clock
staff = browser.staff
start_browser = browser.start_browser

LONG = "tell_the_customer_that_the_invoice_is_there#a-very-long-address-without-any-blank@customers.example.com"


@pytest.fixture
def in_doubt(clock):
    """A task of which nobody knows whether it has paid, with a name and a result that are long."""
    with only_timelines(Billing):
        row = run_once(Order.objects.create(), clock)
        recorded(row, LONG, result={"sent": ["a line that is longer than a phone is wide"] * 3}, seconds=72.4)
        yield row


@pytest.fixture
def changed(clock):
    """A task half of which was done before its code changed."""
    with only_timelines(Billing):
        row = run_once(Order.objects.create(), clock)
    StepRecord.objects.filter(name="transfer").delete()
    recorded(row, LONG, result="/invoices/7")
    with only_timelines(Changed):
        clock.advance(hours=2)
        yield row


@pytest.fixture
def half_done(clock):
    """A loop half of which is done, and how far its handler says it is."""
    with only_timelines(Settling):
        yield half_settled(Order.objects.create(), clock)


def test_it_happened(start_browser, staff, in_doubt, clock):
    browser = start_browser()
    browser.log_in(staff)
    browser.open(detail(in_doubt))
    browser.wait_for(".tl-decisions")

    browser.press("It happened…")
    browser.type("[name=result]", '{"receipt": 7')
    browser.type("[name=reason]", "the bank's statement has it")
    browser.click(".tl-main")
    browser.wait_for_text("This is no JSON")
    browser.type("[name=result]", "}")
    browser.click(".tl-main")

    browser.wait_for_text("Step transfer counts as done.")
    clock.advance(timedelta(minutes=1))
    in_doubt.refresh_from_db()
    assert (in_doubt.state, in_doubt.result[1]) == ("completed", {"receipt": 7})
    assert browser.complaints() == []


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)], ids=["desk-light", "phone-dark"])
@pytest.mark.parametrize("page", ["in_doubt", "changed", "asking"])
def test_pages_keep_nobody_out(start_browser, staff, request, dark, width, page):
    row = request.getfixturevalue("changed" if page == "changed" else "in_doubt")
    browser = start_browser(width=width, dark=dark)
    browser.log_in(staff)
    browser.open(detail(row))
    browser.wait_for(".tl-decisions")
    if page == "asking":
        browser.press("It happened…")
        browser.wait_for("textarea")

    assert browser.barriers() == []
    assert browser.width_needed() <= width


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)], ids=["desk-light", "phone-dark"])
def test_progress_keeps_nobody_out(start_browser, staff, half_done, dark, width):
    browser = start_browser(width=width, dark=dark)
    browser.log_in(staff)
    browser.open(detail(half_done))
    browser.wait_for(".tl-progress progress")
    browser.wait_for(".tl-steps progress")

    assert browser.barriers() == []
    assert browser.width_needed() <= width
