"""The page of a customer in a real browser: light and dark, wide and narrow, and on paper."""

from __future__ import annotations

import base64
import re
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.db.models import Q

from project.accounts.models import User
from tests.admin.conftest import ENTITY
from tests.testapp.models import Plan, Seat
from timeline import Timeline, after, task
from timeline.shortcuts import cancel, emit, hold
from timeline.testing import only_timelines

DAY = timedelta(days=1)


def has_paid(user):
    return False


class Trial(Timeline):
    entity = "accounts.User"
    starts_on = "user.signed_up"
    exits = {"payment.completed": "paid"}

    @task(after(days=2))
    def welcome(self, user): ...

    @task(after(days=9), unless=has_paid)
    def remind(self, user): ...

    @task(after(days=20), only_if=Q(is_staff=True))
    def invite(self, user): ...

    @task(after(remind, days=4))
    def look_again(self, user): ...


class Seating(Timeline):
    entity = "testapp.Seat"
    owner = "plan.user"
    starts_on = "seat.taken"

    @task(after(days=6))
    def free(self, seat): ...


@pytest.fixture
def ada(clock, now):
    """A customer who signed up four days ago, with two seats; one of her mails was cancelled."""
    with only_timelines(Trial, Seating):
        made = User.objects.create(email="ada.lovelace@example.com", signed_up_at=now, trial_ends_at=now)
        emit("user.signed_up", made)
        plan = Plan.objects.create(user=made)
        clock.set(now + DAY)
        for _ in range(2):
            emit("seat.taken", Seat.objects.create(plan=plan))
        clock.set(now + 4 * DAY)
        clock.run_due()
        invite = made.timeline_tasks.get(task_key="trial.invite") if hasattr(made, "timeline_tasks") else None
        if invite:
            cancel(invite, reason="asked by phone", actor="eva")
        hold(made, reason="they dispute the bill", actor="eva")
        yield made


def address(user, **more):
    return f"{ENTITY}?{urlencode({'label': 'accounts.user', 'id': user.pk, **more})}"


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_can_be_read(start_browser, staff, ada, width, dark):
    browser = start_browser(width=width, dark=dark)
    browser.log_in(staff)
    browser.open(address(ada))
    browser.wait_for(".tl-event")

    assert "Its own tasks: held until somebody releases it." in browser.text  # Next is a seat's, which is not held.
    assert "without the hold, it would run: unless has paid" in browser.text
    assert browser.barriers() == []
    assert browser.width_needed() <= width

    browser.follow("Month")
    browser.wait_for_address("span=month")
    browser.wait_for("[aria-current=true]")
    assert browser.barriers() == []
    assert browser.complaints() == []


def test_fits_on_one_sheet(start_browser, staff, ada):
    browser = start_browser()
    browser.log_in(staff)
    browser.open(address(ada))
    browser.wait_for(".tl-event")

    printed = browser.driver.execute_cdp_cmd("Page.printToPDF", {"paperWidth": 8.27, "paperHeight": 11.69})

    assert len(re.findall(rb"/Type\s*/Page\b", base64.b64decode(printed["data"]))) == 1
