"""
What a support agent is asked on the morning after: each question answered at most three pages from the admin's front page.

In the night the mail server was down. A step leads to another page; what is read, typed and confirmed there is none.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from project.accounts.models import User
from tests.admin.conftest import LIST
from timeline import Retry, Timeline, after, at, before, task
from timeline.models import Hold, Identity, ScheduledTask
from timeline.shortcuts import emit
from timeline.store.site import sign_of_poller
from timeline.testing import only_timelines

DAY = timedelta(days=1)
DOWN = "The mail server does not answer."
STEPS = 3

pytestmark = pytest.mark.timeline(raises=False)  # Its mails fail.


class Trial(Timeline):
    """What somebody who tries the product is written."""

    entity = "accounts.User"
    starts_on = "user.created"
    exits = {"payment.configured": "paid"}
    search = ("email",)

    @task(
        before("trial_ends_at", days=5), atomic=False, retry=Retry(max_attempts=1), title="Remind that the trial ends"
    )
    def remind(self, user):
        raise ConnectionRefusedError(DOWN)

    @task(at("trial_ends_at"), title="End the trial")
    def expire(self, user): ...

    @task(after(expire, days=2), title="Ask why they left")
    def ask(self, user): ...


class Agent:
    """Somebody at the admin's front page, whose steps are counted."""

    def __init__(self, browser) -> None:
        self.browser = browser
        self.steps = 0
        browser.open("/admin/")

    def follow(self, words: str) -> None:
        self._step(lambda: self.browser.follow(words, by=By.PARTIAL_LINK_TEXT))

    def open(self, selector: str) -> None:
        self._step(lambda: self.browser.click(selector))

    def look_up(self, words: str) -> None:
        self._step(lambda: self.browser.type("#tl-find", words + Keys.ENTER))

    def row(self, words: str) -> str:
        """The row of a table that has these words."""
        rows = self.browser.driver.find_elements(By.CSS_SELECTOR, "table tbody tr")
        return next(row.text for row in rows if words in row.text)

    def _step(self, act) -> None:
        page = self.browser.find("html")
        act()
        self.browser._wait().until(lambda _driver: _is_gone(page))
        self.browser.wait_for("#content")
        self.steps += 1
        assert self.steps <= STEPS


def _is_gone(element) -> bool:
    try:
        element.is_enabled()
    except Exception:  # noqa: BLE001  It is stale, or the page is being left.
        return True
    return False


@pytest.fixture
def morning(clock, now):
    """Ada paid in time; Ben and Cleo were not reminded last night; the reminders of Dora and Emil are for tomorrow at nine."""
    with only_timelines(Trial):
        for name, day in (("ada", 0), ("ben", 0), ("cleo", 0), ("dora", 1), ("emil", 1)):
            clock.set(now + day * DAY)
            user = User.objects.create(
                email=f"{name}@example.com", signed_up_at=clock.now, trial_ends_at=clock.now + 30 * DAY
            )
            emit("user.created", user)
        clock.set(now + 3 * DAY)
        emit("payment.configured", User.objects.get(email="ada@example.com"))
        clock.set(now + 25 * DAY)
        clock.run_due()
        sign_of_poller(using="default")
        Identity.objects.update(polled_at=timezone.now() + timedelta(hours=1))  # However slow this machine is.
        yield clock


@pytest.fixture
def agent(morning, staff, start_browser):
    browser = start_browser()
    browser.log_in(staff)
    agent = Agent(browser)
    yield agent
    assert browser.complaints() == []


class TestWhyDidSheNotGetTheMail:
    @pytest.mark.parametrize(
        ("who", "state", "why"), [("cleo", "discarded", DOWN), ("ada", "cancelled", "paid")], ids=["failed", "paid"]
    )
    def test_stands_beside_the_mail_on_her_page(self, agent, who, state, why):
        agent.follow("Upcoming events")
        agent.look_up(f"{who}@example.com")

        said = agent.row("Remind that the trial ends")
        assert state in said
        assert why in said


class TestWhatGoesOutTomorrowAtNine:
    def test_is_a_list_of_that_hour(self, agent, morning):
        day = (morning.now + DAY).date()
        agent.follow("Upcoming events")
        agent.open(f".tl-strip a[href='?day={day}']")
        agent.open(f".tl-hours a[href='?day={day}&hour=9']")

        assert "2 tasks on this page" in agent.browser.text
        assert "dora@example.com" in agent.row("Remind that the trial ends")


class TestWhatFailedLastNight:
    def test_is_told_by_its_error_and_all_of_it_is_redriven_by_keys_alone(self, agent, morning):
        press_to(agent, "Upcoming events")
        press_to(agent, "Dead letters")
        assert DOWN in agent.browser.text
        assert "2 tasks" in agent.browser.find(".tl-card").text

        press_to(agent, "Run all 2 again…")
        while focused(agent).get_attribute("id") != "id_reason":
            press(agent, Keys.TAB)
        press(agent, "the mail server is back", Keys.ENTER)

        agent.browser.wait_for_text("2 tasks run again.")
        assert ScheduledTask.objects.filter(previous__state="discarded", reason="the mail server is back").count() == 2


class TestIsAnythingStuck:
    def test_is_the_first_that_health_says(self, agent):
        agent.follow("Upcoming events")
        agent.follow("Health")

        assert "What is due is run, but this is not as it should be:" in agent.browser.text
        assert "2 tasks Remind that the trial ends (trial.remind) failed for good" in agent.browser.text
        assert agent.row("overdue").endswith("0")
        assert agent.row("left by lost workers").endswith("0")


class TestWhichTimelinesDoWeHave:
    def test_is_a_page_that_says_what_each_does(self, agent):
        agent.follow("Upcoming events")
        agent.follow("Timelines")

        told = agent.browser.find("#trial").text
        assert "What somebody who tries the product is written." in told
        assert "user.created" in told
        assert "6 open" in told
        assert "2 failed in 7 days" in told

        agent.open("#trial a[aria-label^='2 failed']")
        assert "cleo@example.com" in agent.browser.text


class TestHoldEverythingForThisCustomer:
    def test_is_a_button_on_their_page(self, agent, morning):
        agent.follow("Upcoming events")
        agent.look_up("dora@example.com")
        agent.follow("Hold…")
        assert "It holds 1 task" in agent.browser.text or "It holds 2 tasks" in agent.browser.text

        agent.browser.type("#id_reason", "a dispute" + Keys.ENTER)
        agent.browser.wait_for(".tl-held-note")

        assert "a dispute" in agent.browser.find(".tl-held-note").text
        morning.set(morning.now + DAY)
        morning.run_due()
        states = ScheduledTask.objects.filter(task_key="trial.remind").in_order().values_list("state", flat=True)
        assert sorted(states) == ["available", "cancelled", "discarded", "discarded", "discarded"]  # Hers is available.
        assert Hold.objects.get().actor == "eva@example.com"


class TestWhatWouldHappenIfIExtended:
    def test_is_shown_beside_what_is_and_does_not_happen(self, agent):
        was = list(ScheduledTask.objects.order_by("pk").values_list("pk", "scheduled_at"))
        agent.follow("Upcoming events")
        agent.look_up("dora@example.com")
        agent.follow("What if…")

        agent.browser.type("#id_trial_ends_at", Keys.ARROW_UP)  # The first part of the date, whichever it is here.
        agent.browser.click(".tl-ask .tl-main")
        agent.browser.wait_for_text("What would be ahead")

        assert "moved" in agent.row("Remind that the trial ends")
        assert "moved" in agent.row("End the trial")
        assert list(ScheduledTask.objects.order_by("pk").values_list("pk", "scheduled_at")) == was


class TestLost:
    def test_a_name_typed_into_the_filter_of_ids_leads_to_find(self, agent):
        agent.follow("Upcoming events")
        agent.browser.click(".tl-folded summary")
        agent.browser.type("#tl-q", "cleo@example.com" + Keys.ENTER)
        agent.browser.wait_for(".tl-empty")

        agent.browser.follow("Find “cleo@example.com” by name or email")
        agent.browser.wait_for_text("Timeline of cleo@example.com")

    def test_a_failed_task_leads_to_all_that_failed_alike(self, agent):
        agent.browser.open(f"{LIST}?state=discarded")
        agent.browser.click(".tl-rows .tl-what a")
        agent.browser.wait_for(".tl-facts")

        agent.browser.follow("All that failed alike")
        agent.browser.wait_for_text("Run all 2 again…")

    def test_the_page_of_a_customer_leads_to_their_account_and_back(self, agent):
        agent.follow("Upcoming events")
        agent.look_up("cleo@example.com")
        agent.follow("Its own page")

        agent.browser.click(".timelinelink")
        agent.browser.wait_for_text("Timeline of cleo@example.com")


def focused(agent):
    return agent.browser.driver.switch_to.active_element


def press(agent, *keys):
    ActionChains(agent.browser.driver).send_keys(*keys).perform()


def press_to(agent, words):
    """Go to a link with the tabulator, and follow it."""
    for _ in range(200):
        if focused(agent).text.startswith(words):
            break
        press(agent, Keys.TAB)
    else:
        pytest.fail(f"No link begins with {words}.")
    agent._step(lambda: press(agent, Keys.ENTER))
