"""The page of limits."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from tests.admin import conftest as admin
from tests.admin.conftest import ALL, LIST, text_of
from timeline import Limit, Timeline, task
from timeline.lifecycle import State
from timeline.models import Opening, ScheduledTask
from timeline.testing import only_timelines

browse, clock, operator, person = admin.browse, admin.clock, admin.operator, admin.person  # Fixtures.

LIMITS = reverse("admin:timeline_scheduledtask_limits")
KEY = "<payout>"


class Paying(Timeline):
    """One at a time, until its end."""

    entity = "testapp.Order"

    @task(limit=Limit(1, KEY, until="end"))
    def pay(self, order): ...


@pytest.fixture(autouse=True)
def _paying(clock):
    with only_timelines(Paying):
        yield


@pytest.fixture
def closed(make_task, order):
    """One was discarded after it was started; another waits for its place."""
    row = make_task(task_key="paying.pay", state=State.DISCARDED, attempt=1)
    waits = make_task(task_key="paying.pay", state=State.AVAILABLE)
    rows = ScheduledTask.objects.filter(task_key="paying.pay")
    rows.update(limit_key=KEY, held_until="opened")
    rows.filter(pk=row.pk).update(slot=1)
    return row, waits


@pytest.fixture
def opener(person, browse):
    return browse(person("olga", *ALL, "open_limit"))


class TestLimits:
    def test_shows_who_keeps_a_limit_closed_and_how_many_wait(self, opener, closed):
        page = text_of(opener.get(LIMITS))

        assert "&lt;payout&gt;" in page
        assert "1 task waits" in page
        assert reverse("admin:timeline_scheduledtask_change", args=[closed[0].pk]) in page
        assert LIMITS in text_of(opener.get(LIST))

    def test_opens_it_for_a_reason(self, opener, closed):
        given = {"key": KEY, "reason": "paid by hand", "seen": str(closed[0].pk)}

        page = text_of(opener.post(LIMITS, given, follow=True))

        assert "1 place is free." in page
        opening = Opening.objects.get()
        assert (opening.limit_key, opening.task_id, opening.reason) == (KEY, closed[0].pk, "paid by hand")
        assert opening.actor
        assert not ScheduledTask.objects.closing().exists()

    @pytest.mark.parametrize(
        "given",
        [
            {"reason": " "},
            {"key": "other"},
            {"key": "pay\x00out"},
            {"key": "x" * 10_000},
            {"seen": []},
            {"seen": "x"},
            {"seen": "01900000-0000-7000-8000-000000000000"},
        ],
    )
    def test_says_what_is_wrong_and_opens_nothing(self, opener, closed, given):
        given = {"key": KEY, "reason": "x", "seen": str(closed[0].pk), **given}

        page = text_of(opener.post(LIMITS, given, follow=True))

        assert 'class="error"' in page
        assert ScheduledTask.objects.closing().count() == 1

    def test_opens_nothing_that_was_closed_since_the_page_was_shown(self, opener, closed, make_task):
        """Somebody else has opened it meanwhile, and the next task has closed it again: nobody has seen to that one."""
        first = closed[0]
        shown = text_of(opener.get(LIMITS))
        ScheduledTask.objects.filter(pk=first.pk).update(slot=0)
        second = make_task(
            task_key="paying.pay", state=State.DISCARDED, attempt=1, limit_key=KEY, held_until="opened", slot=1
        )

        page = text_of(opener.post(LIMITS, {"key": KEY, "reason": "x", "seen": str(first.pk)}, follow=True))

        assert f'name="seen" value="{first.pk}"' in shown
        assert "is closed by other tasks than you have seen" in page
        assert list(ScheduledTask.objects.closing()) == [second]

    def test_takes_no_form_of_another_site(self, person, closed):
        client = Client(enforce_csrf_checks=True)
        client.force_login(person("olga", *ALL, "open_limit"))

        assert client.post(LIMITS, {"key": KEY, "reason": "x", "seen": str(closed[0].pk)}).status_code == 403
        assert ScheduledTask.objects.closing().count() == 1

    def test_opens_nothing_by_being_looked_at(self, opener, closed):
        opener.get(LIMITS, {"key": KEY, "reason": "x", "seen": str(closed[0].pk)})

        assert ScheduledTask.objects.closing().count() == 1

    def test_offers_nothing_to_who_may_not_open(self, operator, closed):
        assert 'name="reason"' not in text_of(operator.get(LIMITS))
        assert operator.post(LIMITS, {"key": KEY, "reason": "x"}).status_code == 403
        assert ScheduledTask.objects.closing().count() == 1

    def test_is_for_who_may_see_all_tasks(self, person, browse, closed):
        assert browse(person("vera", "open_limit")).get(LIMITS).status_code == 403

    def test_says_that_there_are_none(self, opener):
        assert "Nothing holds a place" in text_of(opener.get(LIMITS))

    def test_takes_as_many_statements_for_many(self, opener, make_task, order, django_assert_max_num_queries):
        for number in range(30):
            row = make_task(task_key="paying.pay", state=State.DISCARDED, attempt=1)
            ScheduledTask.objects.filter(pk=row.pk).update(limit_key=f"k{number}", held_until="opened", slot=1)

        with django_assert_max_num_queries(8):
            opener.get(LIMITS)
