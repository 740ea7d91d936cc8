"""
The pictures of the docs, taken anew of the demo's site: ``make pictures``. Not part of the tests.

Sixty people sign up within a month; the mail server is down for a while, and one task is overdue.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone
from selenium.webdriver.common.keys import Keys

from project.accounts.links import timeline_token
from project.accounts.models import User
from project.accounts.timelines import Trial
from project.demo.operators import make_operator
from project.demo.people import people
from project.demo.told import live_through
from project.settings import BASE_DIR
from tests.admin.conftest import ENTITY, LIST, detail
from timeline.models import Identity, ScheduledTask
from timeline.shortcuts import hold, move
from timeline.store.site import sign_of_poller
from timeline.testing import StoryClock, only_timelines

DOCS = BASE_DIR / "docs" / "pictures"
GROUPS, PEOPLE, DAYS = 10, 6, 3  # So many people sign up, act for so many days, and then the next.
FAILED = 5  # So many mails are given up.


def refuse(**_settings):
    """A mail server that is down."""
    raise ConnectionRefusedError(111, "Connection refused: smtp.example.com:25")


@pytest.fixture
def clock(transactional_db, now):
    """Story time, with the site's own timeline alone."""
    with only_timelines(Trial), StoryClock(now, raises=False) as clock:  # Mails fail here.
        yield clock


@pytest.fixture
def site(clock, start_browser, monkeypatch):
    """Start a browser whose window is so large, logged in: ``site(880, 660)``. All has happened before."""
    everybody = list(people(GROUPS * PEOPLE))
    for number in range(GROUPS):
        for _step in live_through(everybody[number * PEOPLE :][:PEOPLE], DAYS, clock):
            pass
    with monkeypatch.context() as patch:
        patch.setattr("project.accounts.mails.send_mail", lambda *_mail: refuse())
        clock.run_until(lambda: ScheduledTask.objects.filter(state="discarded").count() >= FAILED)
    ahead = ScheduledTask.objects.filter(state="scheduled", task_key="trial.expire").order_by("scheduled_at")[3]
    move([ahead], at=ahead.scheduled_at + timedelta(days=2), reason="asked by phone for a few more days", actor="eva")
    overdue = ScheduledTask.objects.filter(state="scheduled").earliest("scheduled_at")
    clock.set(overdue.scheduled_at + timedelta(minutes=20))
    operator = make_operator(now=clock.now)
    sign_of_poller(using="default")
    Identity.objects.update(polled_at=timezone.now() + timedelta(hours=1))

    def at(width: int, height: int):
        browser = start_browser(width=width)
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
        browser.open("/admin/login/")
        browser.type("[name=username]", operator.email)
        browser.type("[name=password]", operator.password)
        browser.click("[type=submit]")
        browser.wait_for("#user-tools")
        browser.open(LIST)
        browser.click("#toggle-nav-sidebar")  # It stays closed.
        return browser

    return at


def take(browser, name, shown):
    browser.wait_for(shown)
    browser.driver.execute_script("document.activeElement.blur()")
    browser.driver.save_screenshot(DOCS / f"{name}.png")


class TestPictures:
    def test_are_taken_of_what_support_looks_at(self, site, clock):
        failed = ScheduledTask.objects.dead_letters().order_by("finished_at").first()
        browser = site(1240, 900)
        browser.open(f"{ENTITY}?label={failed.entity_label}&id={failed.entity_id}")
        take(browser, "support-customer", "figure svg")

        ahead = ScheduledTask.objects.filter(state="scheduled", scheduled_at__gt=clock.now + timedelta(days=1))
        next_at = ahead.earliest("scheduled_at").scheduled_at
        browser = site(1240, 920)
        browser.open(f"{LIST}?day={next_at.date()}&hour=9")
        take(browser, "support-hour", ".tl-hours [aria-current]")

        browser = site(1240, 620)
        browser.open(f"{reverse('admin:timeline_scheduledtask_dead')}?since=day")
        take(browser, "support-dead-letters", ".tl-card")

        browser = site(1240, 520)
        browser.open(f"{reverse('admin:timeline_scheduledtask_redrive')}?group={failed.fingerprint}")
        browser.choose("[name=spread]", "3600")
        browser.type("#id_reason", "the mail server is back")
        take(browser, "support-redrive", ".tl-ask")

        browser = site(1240, 620)
        browser.open(reverse("admin:timeline_scheduledtask_health"))
        take(browser, "support-health", ".tl-findings")

        whose = ahead.filter(task_key="trial.remind").order_by("-scheduled_at").first().entity_id
        browser = site(1240, 980)
        browser.open(f"{reverse('admin:timeline_scheduledtask_what_if')}?label=accounts.user&id={whose}")
        browser.type("#id_trial_ends_at", Keys.ARROW_UP)
        browser.click(".tl-ask .tl-main")
        take(browser, "support-what-if", "figure svg")

        hold(User.objects.get(pk=whose), reason="they dispute the bill", actor="eva")
        browser = site(1240, 640)
        browser.open(f"{ENTITY}?label=accounts.user&id={whose}")
        take(browser, "support-hold", ".tl-held-note")

    def test_are_taken_of_four_pages(self, site):
        browser = site(1240, 840)
        browser.wait_for(".tl-rows")
        browser.driver.save_screenshot(DOCS / "upcoming-events.png")

        discarded = ScheduledTask.objects.filter(state="discarded").first()
        browser = site(1240, 860)
        browser.open(detail(discarded))
        browser.wait_for(".tl-facts")
        browser.driver.save_screenshot(DOCS / "a-task.png")

        user = User.objects.get(pk=ScheduledTask.objects.get(reason__startswith="asked by phone").entity_id)
        browser = site(1240, 640)
        browser.open(f"{ENTITY}?label=accounts.user&id={user.pk}")
        browser.wait_for("figure svg")
        browser.driver.save_screenshot(DOCS / "timeline-of-an-entity.png")

        user = User.objects.get(email="gia@example.com")
        browser = site(880, 660)
        browser.open(reverse("my-timeline", args=[timeline_token(user)]))
        browser.wait_for("li.now")
        browser.driver.save_screenshot(DOCS / "my-timeline.png")

    def test_are_taken_of_a_timeline(self, site):
        browser = site(1240, 1120)
        browser.open(reverse("admin:timeline_scheduledtask_timeline", args=["trial"]))
        browser.wait_for(".tl-line")
        browser.driver.save_screenshot(DOCS / "a-timeline.png")
