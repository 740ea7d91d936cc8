"""The breadcrumbs of our pages look like those of Django's own, whichever Django it is."""

from __future__ import annotations

import pytest

from tests.admin.conftest import LIST, detail
from timeline.models import ScheduledTask

LOOK = """
const bar = document.querySelector(".breadcrumbs"), link = bar.querySelector("a"), of = getComputedStyle;
return [of(bar).backgroundColor, of(bar).color, of(bar).margin, of(link).color, of(link).fontSize]
"""
SIZE = "return getComputedStyle(document.querySelector('.breadcrumbs')).padding"
BAR = "return document.querySelector('.breadcrumbs').getBoundingClientRect().height"


class TestBreadcrumbs:
    @pytest.mark.parametrize("width", [390, 1280])
    @pytest.mark.parametrize("dark", [False, True])
    def test_look_like_djangos_own(self, start_browser, staff, orders, width, dark):
        browser = start_browser(width=width, dark=dark)
        browser.log_in(staff)
        browser.open("/admin/accounts/user/")
        djangos = browser.driver.execute_script(LOOK)

        for page in (LIST, detail(ScheduledTask.objects.first())):
            browser.open(page)

            assert browser.driver.execute_script(LOOK) == djangos
            assert browser.driver.execute_script(SIZE) == ("10px 15px" if width < 768 else "10px 40px")

    def test_stand_on_one_line_and_tell_the_way(self, start_browser, staff, orders):
        browser = start_browser()
        browser.log_in(staff)
        browser.open(detail(ScheduledTask.objects.first()))

        assert browser.driver.execute_script(BAR) < 50
        home, *_trail, here = browser.driver.find_elements("css selector", ".breadcrumbs li")
        assert (home.text, here.get_attribute("aria-current")) == ("Home", "page")
