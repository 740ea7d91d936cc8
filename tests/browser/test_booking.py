"""The pages of bookings in a real browser: an applicant gives her code, an operator helps; dark, narrow, German, read aloud."""

from __future__ import annotations

from dataclasses import replace

import pytest

from project.accounts.models import User
from project.demo.office import FRIENDLY
from project.portal.links import booking_token
from project.portal.presenting import WORDS
from project.portal.services import cancel, resolve
from project.portal.states import S
from tests.booking import wanted, way_of
from tests.browser.conftest import PASSWORD

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def operator(bookings):
    """Who may do everything."""
    at = bookings.now
    made = User(email="olga@example.com", is_staff=True, is_superuser=True, signed_up_at=at, trial_ends_at=at)
    made.set_password(PASSWORD)
    made.save()
    return made


@pytest.fixture
def pages(bookings, portal):
    """A page that asks for a code, one that asks to choose, one that has ended, and the desk with something on it."""
    asked = {}
    for name, ways in {"code": {"code": 1}, "choice": {"late": 1}, "booked": {}, "stuck": {"strange": 1}}.items():
        portal.office.ways = replace(FRIENDLY, **ways)
        asked[name] = wanted(bookings, name="Adelheid von und zu Hohenstein-Wittgenstein", latest_hour=12)
        bookings.advance(seconds=0)
    portal.office.ways = FRIENDLY
    return asked


def page_of(booking):
    return f"/appointments/{booking_token(booking)}/"


@pytest.mark.parametrize(("width", "dark", "language"), [(390, True, "de"), (1280, False, "en"), (390, False, "en")])
def test_can_be_read_by_anybody(start_browser, operator, pages, width, dark, language):
    browser = start_browser(width=width, dark=dark)
    browser.log_in(operator)
    browser.open("/appointments/")
    if language == "de":
        browser.click(".languages button")
        browser.wait_for_text("Wir holen Ihnen den Termin")
    paths = {"apply": "/appointments/", "desk": "/appointments/desk/"}
    paths |= {name: page_of(booking) for name, booking in pages.items()}
    for name, path in paths.items():
        browser.open(path)
        assert browser.width_needed() <= width, name
        assert browser.barriers() == [], name
        assert browser.complaints() == []
        assert browser.strangers() == set()


def test_goes_on_when_she_gives_her_code_without_a_script(start_browser, bookings, portal, pages):
    browser = start_browser(scripts=False)
    browser.open(page_of(pages["code"]))
    browser.type("[name=code]", portal.office.code_of(pages["code"].reference))
    browser.click("form.form button")
    browser.wait_for_text("We hand on your code")

    bookings.advance(seconds=0)

    assert way_of(pages["code"])[-1] in (S.BOOKED, S.CHOICE_REQUIRED)


def test_shows_operators_what_begins_to_wait(start_browser, operator, bookings, portal):
    """The desk, without a reload; and what somebody else has done is there no more."""
    browser = start_browser(width=390)
    browser.log_in(operator)
    browser.open("/appointments/desk/")
    browser.wait_for_text("Pause updates")
    browser.driver.execute_script("window.stayed = true")
    portal.office.ways = replace(FRIENDLY, strange=1)

    stuck = wanted(bookings)
    bookings.advance(seconds=0)
    browser.wait_for_text(stuck.reference)
    resolve(stuck, actor="somebody else", state=S.OPERATOR_ESCALATED)
    browser.wait_for_text("Nothing waits.")

    assert browser.driver.execute_script("return window.stayed") is True
    assert (browser.barriers(), browser.complaints()) == ([], [])
    assert browser.width_needed() <= 390


def test_asks_for_the_code_by_itself_and_keeps_what_is_typed(start_browser, bookings, portal):
    portal.office.ways = replace(FRIENDLY, code=1)
    booking = wanted(bookings)
    browser = start_browser(width=390)
    browser.open(page_of(booking))
    browser.wait_for_text("Pause updates")
    browser.driver.execute_script("window.stayed = true")

    bookings.advance(seconds=0)
    browser.wait_for("[name=code]")
    browser.type("[name=code]", "12")
    browser.driver.execute_script("scrollTo(0, 120)")
    at = browser.driver.execute_script("return scrollY")
    cancel(booking)
    browser.wait_for_text("There is something new.")

    assert browser.find("[name=code]").get_attribute("value") == "12"
    assert browser.driver.execute_script("return [window.stayed, scrollY]") == [True, at]
    assert (browser.barriers(), browser.complaints()) == ([], [])

    browser.driver.execute_script("document.activeElement.blur(); document.querySelector('[name=code]').value = ''")
    browser.wait_for_text(str(WORDS[S.CANCELLED]))
    assert "There is something new." not in browser.text
