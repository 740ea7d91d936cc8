"""Needs attention: the page that opens first, and the bar on all pages with its counts."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from project.accounts.models import User
from tests.admin.conftest import ALL, LIST, text_of
from tests.admin.test_health import HEALTH, polled
from tests.admin.test_people import Complaint
from tests.admin.test_people_deciding import Refunding
from tests.testapp.models import Order
from timeline.admin import attention
from timeline.lifecycle import State
from timeline.models import Hold
from timeline.shortcuts import emit
from timeline.store.site import sign_of_poller
from timeline.testing import only_timelines
from timeline.webhooks.models import Endpoint

ATTENTION = reverse("admin:timeline_scheduledtask_attention")
PEOPLE = reverse("admin:timeline_scheduledtask_people")
DEAD = reverse("admin:timeline_scheduledtask_dead")


@pytest.fixture(autouse=True)
def _known(clock):
    sign_of_poller(using="default")
    with only_timelines(Complaint, Refunding):
        yield


@pytest.fixture
def boss(person, browse):
    """Somebody who may do and see everything."""
    return browse(person("boss", *ALL, "view_hold", "hold_tasks", is_superuser=True))


def waits_in_the_bar(page):
    """What the bar says waits, on any page."""
    bar = page.partition('class="tl-bar-nav"')[2]
    found = re.search(rf'href="{ATTENTION}"[^>]*>[^<]*(?:<span class="tl-badge"[^>]*>([^<]+)</span>)?', bar)
    return (found[1] or "0") if found else None


def titles(page):
    """The sections of the page, each with its number."""
    return dict(re.findall(r"<h2>([^<]+) <span class=\"tl-badge\">([^<]+)</span></h2>", page))


class TestPage:
    def test_says_that_all_is_well_only_where_nothing_waits(self, boss, make_task, now):
        page = text_of(boss.get(ATTENTION))
        assert "All is well. Looked at 09:00." in page
        assert "What was looked at: Waiting for people · Overdue · Failed for good · Steps in doubt" in page
        assert " · On hold · Webhooks · How it is run." in page

        make_task(
            task_key="refunding.refund", state=State.DISCARDED, reason_code="error", finished_at=now - timedelta(9)
        )

        page = text_of(boss.get(ATTENTION))
        assert "All is well" not in page
        assert "1 thing waits for a person." in page

    def test_does_not_say_it_has_looked_at_what_is_not_shown(self, person, browse):
        page = text_of(browse(person("vera", "view_scheduledtask")).get(ATTENTION))

        assert " · Failing now, will be tried again · How it is run." in page

    def test_names_whom_failures_are_about_and_why_in_words(self, boss, about):
        failed = {"state": State.DISCARDED, "reason_code": "worker_lost", "task_key": "refunding.refund"}
        for _ in range(5):
            about(Order.objects.create(), fingerprint="1" * 16, **failed)

        page = text_of(boss.get(ATTENTION))

        assert "5 tasks: its worker was lost<br>" in page
        assert len(re.findall(r"order \d+</a>", page)) == 3
        assert "and 2 more" in page

    def test_says_that_there_are_others_where_it_has_not_counted_them(self, boss, about, monkeypatch):
        monkeypatch.setattr(attention, "CONCERNED", 3)
        failed = {"state": State.DISCARDED, "reason_code": "error", "task_key": "refunding.refund"}
        for _ in range(5):
            about(Order.objects.create(), fingerprint="1" * 16, **failed)

        assert "and others" in text_of(boss.get(ATTENTION))

    def test_has_each_kind_of_what_waits_with_its_number(self, boss, make_task, now):
        for number in range(2):
            make_task(task_key="refunding.refund", state=State.DISCARDED, reason_code="error", error=f"Boom: {number}")
        make_task(
            task_key="refunding.refund", state=State.RETRYABLE, reason_code="in_doubt", scheduled_at=now + timedelta(1)
        )
        make_task(
            task_key="refunding.refund", state=State.RETRYABLE, reason_code="error", scheduled_at=now + timedelta(1)
        )
        make_task(task_key="refunding.refund", state=State.AVAILABLE, scheduled_at=now - timedelta(1))
        make_task(task_key="gone.away", scheduled_at=now + timedelta(1))
        Endpoint.objects.create(url="https://a.example/x", topics=["task"], created_at=now, failures=9)
        emit("complaint.made", Order.objects.create())
        emit("refund.asked", Order.objects.create())
        Hold.objects.create(scope="entity", entity_label="testapp.order", entity_id="0", reason="x", created_at=now)

        assert titles(text_of(boss.get(ATTENTION))) == {
            "Waiting for people": "2",
            "Overdue": "1",
            "Failed for good": "2",
            "Steps in doubt": "1",
            "Failing now, will be tried again": "1",
            "On hold": "1",
            "Webhooks": "1",
            "How it is run": "1",
        }

    def test_shows_what_waits_for_people_by_the_time_until_when(self, boss, clock):
        orders = [Order.objects.create() for _ in range(3)]
        emit("complaint.made", orders[0])  # Without a timer.
        emit("refund.asked", orders[1])  # For two days.
        emit("complaint.made", orders[2])
        emit("complaint.parked", orders[2])  # For four hours, but then nobody is asked.
        page = text_of(boss.get(ATTENTION))

        assert page.index(f"id={orders[1].pk}") < page.index(f"id={orders[0].pk}")
        assert f"id={orders[2].pk}" not in page
        assert "in 2 days" in page.replace("\xa0", " ")

    def test_has_the_action_beside_it_for_who_may(self, boss, person, browse):
        emit("refund.asked", Order.objects.create())
        vera = browse(person("vera", "view_scheduledtask"))

        assert 'name="action" value="approve"' in text_of(boss.get(ATTENTION))
        assert 'name="action" value="approve"' not in text_of(vera.get(ATTENTION))
        assert "not by you" in text_of(vera.get(ATTENTION))

    def test_says_why_something_is_overdue(self, boss, make_task, now):
        make_task(task_key="refunding.refund", scheduled_at=now - timedelta(hours=1))
        assert "1 task: Polls have not taken them yet." in text_of(boss.get(ATTENTION))

        polled(timedelta(minutes=9))

        assert "1 task: Nobody polls, so nothing is sent to workers." in text_of(boss.get(ATTENTION))

    def test_does_not_call_overdue_what_is_on_hold(self, boss, make_task, now):
        make_task(task_key="refunding.refund", scheduled_at=now - timedelta(hours=1))
        Hold.objects.create(scope="timeline", target="refunding", reason="x", created_at=now)

        assert "Overdue" not in titles(text_of(boss.get(ATTENTION)))

    def test_is_for_who_may_see_all_tasks(self, person, browse):
        assert browse(person("mia", "view_payload")).get(ATTENTION).status_code == 403

    @pytest.mark.parametrize("size", [1, 40])
    def test_asks_twelve_queries_at_most(self, person, browse, make_task, now, size):
        """Session and user, and what they may, are four of them."""
        oona = browse(person("oona", *ALL, "view_hold"))
        for number in range(size):
            make_task(
                task_key="refunding.refund", state=State.DISCARDED, reason_code="error", fingerprint=f"{number:016}"
            )
            make_task(
                task_key="refunding.refund",
                state=State.RETRYABLE,
                reason_code="in_doubt",
                entity_label="testapp.order",
                entity_id=f"{number}",
                scheduled_at=now + timedelta(1),
            )
            order = Order.objects.create()
            emit("complaint.made", order)
            emit("refund.asked", order)
            Hold.objects.create(
                scope="entity", entity_label="testapp.order", entity_id=f"{order.pk}", reason="x", created_at=now
            )
            make_task(task_key="gone.away", scheduled_at=now + timedelta(1))
        oona.get(ATTENTION)

        with CaptureQueriesContext(connection) as queries:
            assert oona.get(ATTENTION).status_code == 200

        assert len(queries) <= 12


class TestBar:
    def test_says_on_each_page_the_number_that_the_page_says(self, boss, make_task):
        emit("complaint.made", Order.objects.create())
        make_task(task_key="refunding.refund", state=State.DISCARDED, reason_code="error")

        for address in (ATTENTION, LIST, HEALTH, PEOPLE, DEAD, reverse("admin:timeline_scheduledtask_find")):
            assert waits_in_the_bar(text_of(boss.get(address))) == "2", address
        assert "2 things wait for a person." in text_of(boss.get(ATTENTION))

    def test_names_only_what_the_user_may_open(self, person, browse, about):
        mia = person("mia", is_staff=True)
        about(mia)
        page = text_of(browse(mia).get(LIST))

        assert f'href="{DEAD}"' in page
        assert waits_in_the_bar(page) is None
        for address in (HEALTH, PEOPLE, reverse("admin:timeline_scheduledtask_holds")):
            assert f'href="{address}"' not in page

    def test_costs_a_list_no_statement(self, person, browse, make_task):
        """Who may not see all tasks is shown no counts, and asks as often."""
        boss, mia = person("boss", is_superuser=True, is_staff=True), person("mia", is_superuser=True, is_staff=True)

        def statements(browser):
            browser.get(LIST)
            with CaptureQueriesContext(connection) as queries:
                browser.get(LIST)
            return len(queries)

        before = statements(browse(boss))
        make_task(task_key="refunding.refund", state=State.DISCARDED, reason_code="error")
        assert statements(browse(mia)) == before
        assert User.objects.exists()


class TestHealth:
    def test_says_that_nothing_waits_only_where_that_is_so(self, boss):
        assert "and nothing waits for you" in text_of(boss.get(HEALTH))

        emit("complaint.made", Order.objects.create())

        page = text_of(boss.get(HEALTH))
        assert "and nothing waits for you" not in page
        assert "1 waits for a person" in page
        assert PEOPLE in page

    def test_counts_an_approval_until_it_is_decided(self, boss):
        order = Order.objects.create()
        emit("refund.asked", order)
        assert "1 waits for a person" in text_of(boss.get(HEALTH))

        emit("refund.approved", order)

        assert "waits for a person" not in text_of(boss.get(HEALTH))
