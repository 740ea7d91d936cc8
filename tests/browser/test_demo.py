"""A walk through the demo's site, on the demo's own data: eight people, and twenty-six days of their trials."""

from __future__ import annotations

import pytest
from django.urls import reverse

from project.accounts.links import timeline_token
from project.accounts.models import User
from project.accounts.timelines import Trial
from project.demo.operators import make_operator
from project.demo.people import people
from project.demo.told import live_through
from tests.admin.conftest import LIST
from timeline.models import ScheduledTask
from timeline.testing import StoryClock, only_timelines

DAYS = 26


@pytest.fixture
def clock(transactional_db, now):
    """Story time, with the site's own timeline alone."""
    with only_timelines(Trial), StoryClock(now) as clock:
        yield clock


@pytest.fixture
def login(clock):
    """What opens the admin, after all that has happened."""
    operator = make_operator(now=clock.now)
    assert sum(step.ran for step in live_through(list(people(8)), DAYS, clock)) > 0
    return operator


class Walk:
    """An operator's round: one page after the other, each looked at."""

    def __init__(self, browser, login, *, scripts: bool) -> None:
        self.browser = browser
        self.login = login
        self.scripts = scripts

    def look(self) -> None:
        """Nothing serious for axe-core either."""
        if self.scripts:
            assert self.browser.barriers() == []
        self.listen()

    def listen(self) -> None:
        """No complaint in the console, nothing asked of other hosts."""
        assert self.browser.complaints() == []
        assert self.browser.strangers() == set()

    def enter(self) -> None:
        """Log in, and go where the front page of the admin leads."""
        self.browser.open("/admin/login/")
        self.look()
        self.browser.type("[name=username]", self.login.email)
        self.browser.type("[name=password]", self.login.password)
        self.browser.click("[type=submit]")
        self.browser.wait_for("#user-tools")
        self.browser.follow("Upcoming events")
        self.browser.wait_for(".tl-rows")
        self.look()

    def filter(self) -> None:
        """By timeline and state, then by a day of the strip."""
        self.browser.click(".tl-folded summary")
        self.browser.choose("#tl-timeline", "trial")
        self.browser.choose("#tl-state", "scheduled")
        self.browser.click(".tl-go button")
        self.browser.wait_for(".tl-chips")
        everything = ScheduledTask.objects.filter(state="scheduled").count()
        self.browser.wait_for_text(f"{everything} tasks on this page")
        self.look()
        self.browser.click(".tl-strip a:not(.tl-none)")
        self.browser.wait_for(".tl-strip [aria-current=date]")
        assert f"{everything} tasks on this page" not in self.browser.text
        assert "trial.expire" in self.browser.find(".tl-rows").text
        self.look()

    def search(self, user: User) -> None:
        """Find somebody's task and open it."""
        self.browser.open(LIST)
        self.browser.click(".tl-folded summary")
        self.browser.type("#tl-q", f"accounts.user {user.pk}")
        self.browser.click(".tl-go button")
        self.browser.wait_for_text("1 task on this page")
        self.look()
        self.browser.click(".tl-rows tbody a")
        self.browser.wait_for(".tl-facts")
        assert user.email in self.browser.text
        self.look()

    def cancel(self) -> None:
        """Not without a reason; then it is in the log, with who did it."""
        self.browser.click("button[value=cancel]")
        self.browser.wait_for("#id_reason")
        self.look()
        self.browser.click(".tl-main")
        self.browser.wait_for(".tl-error")
        self.look()
        assert not ScheduledTask.objects.filter(reason_code="operator").exists()
        self.browser.type("#id_reason", "they asked for more time")
        self.browser.click(".tl-main")
        self.browser.wait_for(".messagelist .success")
        trace = self.browser.find(".tl-trace").text
        assert "they asked for more time" in trace
        assert self.login.email in trace
        self.look()

    def redrive(self) -> None:
        """What was cancelled comes again as the next revision."""
        self.browser.click("button[value=redrive]")
        self.browser.type("#id_reason", "they did not after all")
        self.browser.click(".tl-main")
        self.browser.wait_for(".messagelist .success")
        self.browser.wait_for_text("before it: revision 1")
        self.look()

    def see_the_timeline(self, user: User) -> None:
        """As a picture and in words: what has happened and what will."""
        self.browser.follow("Timeline of this entity")
        self.browser.wait_for("figure svg")
        assert f"Timeline of {user.email}" in self.browser.text
        assert {"completed", "cancelled", "available"} <= set(self.browser.text.split())
        self.look()

    def see_as(self, user: User) -> None:
        """The page that the person themselves has."""
        self.browser.open(reverse("my-timeline", args=[timeline_token(user)]))
        self.browser.wait_for("li.now")
        assert user.website in self.browser.text
        self.look()

    def read_the_docs(self) -> None:
        """Ask the API with their help; without scripts the page says where the same stands."""
        self.browser.open(reverse("timeline_api:docs"))
        if not self.scripts:
            assert "This page needs JavaScript" in self.browser.text
            self.look()
            self.browser.follow("The OpenAPI document says the same.")
            self.browser.wait_for_text('"openapi":"3.1.0"')
            return
        self.browser.wait_for(".opblock")
        self.look()
        self.browser.click("#operations-me-my_tasks .opblock-summary-control")
        self.browser.click("#operations-me-my_tasks .try-out__btn")
        self.browser.click("#operations-me-my_tasks .execute")
        self.browser.wait_for_text('"upcoming"')
        self.listen()  # The form that has opened is Swagger UI's own, with choices that have no label.


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
class TestAWalk:
    def test_goes_well_all_the_way(self, start_browser, login, scripts):
        finn = User.objects.get(email="finn@example.com")
        browser = start_browser(scripts=scripts)
        walk = Walk(browser, login, scripts=scripts)

        walk.enter()
        walk.filter()
        walk.search(finn)
        walk.cancel()
        walk.redrive()
        walk.see_the_timeline(finn)
        walk.see_as(finn)
        walk.read_the_docs()
