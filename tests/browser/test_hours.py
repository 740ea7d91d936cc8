"""What goes out tomorrow at nine: three steps from the front page of the admin, also without scripts and on a phone."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils.translation import gettext_lazy

from tests.admin.conftest import LIST
from tests.testapp.models import Order
from timeline import Timeline, after, task
from timeline.shortcuts import emit
from timeline.testing import only_timelines

DAY = timedelta(days=1)


class Welcome(Timeline):
    """Mails that a new customer gets."""

    entity = "testapp.Order"
    starts_on = "order.placed"

    @task(after(days=1), title=gettext_lazy("Ask whether the parcel has come, and whether all of it was in there"))
    def ask_for_the_parcel(self, order):
        """Send the mail that asks, once."""

    @task(after(days=1, hours=5), title="Remind")
    def remind(self, order): ...

    @task(after(days=2))
    def close(self, order): ...


@pytest.fixture
def many(clock):
    with only_timelines(Welcome):
        for _ in range(12):
            emit("order.placed", Order.objects.create())
        yield


@pytest.mark.parametrize(("width", "dark", "scripts"), [(1280, False, False), (390, True, True)])
def test_what_goes_out_tomorrow_at_nine(start_browser, staff, many, now, width, dark, scripts):
    browser = start_browser(width=width, dark=dark, scripts=scripts)
    browser.log_in(staff)
    browser.open("/admin/")

    browser.click(f"#content a[href='{LIST}']")
    browser.click(f".tl-strip a[href='?day={(now + DAY).date()}']")
    browser.click(f".tl-hours a[href='?day={(now + DAY).date()}&hour=9']")
    browser.wait_for(".tl-hours [aria-current=time]")

    assert "12 tasks on this page" in browser.text
    assert "Ask whether the parcel has come" in browser.text
    assert "Remind" not in browser.find("#tl-tasks").text
    assert browser.width_needed() <= width
    if scripts:
        assert browser.barriers() == []
        assert browser.complaints() == []
