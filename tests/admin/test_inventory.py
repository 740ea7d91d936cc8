"""The pages of timelines: all of them, and one with its picture and live counts."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

import pytest
from django.urls import reverse

from tests.admin.conftest import LIST, Account, Care, text_of
from tests.machines import Booking
from tests.testapp.models import Order
from timeline import Machine, Timeline, after, daily, task
from timeline.admin import timeline_pages
from timeline.features.recurring.verbs import NextBeginnings, recur
from timeline.lifecycle import State
from timeline.models import TimelineRun
from timeline.policy import TimelinePolicy
from timeline.shortcuts import emit, hold, release
from timeline.testing import only_timelines

INVENTORY = reverse("admin:timeline_scheduledtask_inventory")
CARE = reverse("admin:timeline_scheduledtask_timeline", args=["care"])


def _greet(self, order): ...


_greet.__name__ = "greet"
LATER = task(after(days=9))(_greet)


class Nightly(Timeline):
    """Settles."""

    starts_on = daily("02:00", zone="Europe/Berlin")
    shadow = True

    @task(after())
    def settle(self): ...


class Door(Machine):
    """Of a house."""

    entity = "testapp.Order"
    starts_on = "door.made"
    initial = "shut"
    table = {"shut": {"door.opened": "open"}, "open": {"door.shut": "shut", "door.torn": "gone"}, "gone": {}}


class OnlyOrders(TimelinePolicy):
    """Nobody sees what is about accounts."""

    def visible(self, tasks, user):
        return super().visible(tasks, user).filter(entity_label="testapp.order")


@pytest.fixture
def rows(about, order, now):
    """Tasks in many ways."""
    for hours in (-5, 5, 50):
        about(order, hours, task_key="care.greet")
    about(order, -200, task_key="care.greet", state=State.DISCARDED, reason_code="error", finished_at=now)
    about(
        order, -900, task_key="care.greet", state=State.DISCARDED, reason_code="error", finished_at=now - timedelta(8)
    )
    for code in ("exit", "exit", "guard"):
        about(order, 3, task_key="care.greet", state=State.CANCELLED, reason_code=code)
    about(order, 3, task_key="care.greet", state=State.COMPLETED)
    about(order, 3, task_key="care.follow_up")


def links(response, within):
    """Of each link to the list within a part of the page: what it says, and where it leads."""
    text = text_of(response)
    found = re.findall(rf'<a class="{within} [^"]*" href="([^"]*)" aria-label="([^"]*)"', text)
    return {unescape(label): unescape(where) for where, label in found}


class TestAll:
    def test_shows_each_timeline(self, operator, rows):
        page = text_of(operator.get(INVENTORY))

        assert "About orders; its follow-up is foreseen." in page
        assert "order.placed" in page
        assert f'href="{CARE}"' in page
        assert INVENTORY in text_of(operator.get(LIST))

    def test_says_when_the_clock_starts_one_next_and_what_is_in_shadow_or_a_machine(self, operator):
        with only_timelines(Nightly, Door):
            page = text_of(operator.get(INVENTORY))

        assert "every day at 02:00 in Europe/Berlin" in page
        assert "2026-03-02 01:00" in page  # In UTC, which is the site's zone here.
        assert "in shadow" in page
        assert "machine" in page

    def test_says_when_the_next_task_of_each_is_due(self, operator, about, order):
        for hours in (30, 5, 50):
            about(order, hours)
        about(order, 2, state=State.CANCELLED)

        text = text_of(operator.get(INVENTORY))

        assert "<strong>in 5 hours</strong>" in text
        assert '<time datetime="2026-03-01T14:00:00+00:00">Sun 2026-03-01 14:00</time>' in text
        assert "next task 2026-03-01 14:00" in text_of(operator.get(CARE))

    def test_has_what_runs_next_first_and_says_so_on_top_of_a_narrow_page(self, operator, about, order):
        with only_timelines(Nightly, Care, Door):
            emit("order.placed", order)
            lines = operator.get(INVENTORY).context["lines"]
            text = text_of(operator.get(INVENTORY))

        assert [line.next is None for line in lines] == sorted(line.next is None for line in lines)
        times = [line.next.at for line in lines if line.next]
        assert len(times) > 1
        assert times == sorted(times)
        assert "a run by the clock" in text
        assert text.index('<ul class="tl-nexts"') < text.index('<table class="tl-table tl-lines"')

    def test_marks_what_is_on_hold_as_a_whole(self, operator, about, order):
        about(order, 5)
        held = hold(timeline="care", reason="a release")

        assert {line.name for line in operator.get(INVENTORY).context["lines"] if line.is_held} == {"care"}

        release(held)
        hold(everything=True, reason="a release")
        assert all(line.is_held for line in operator.get(INVENTORY).context["lines"])
        assert 'in 5 hours</strong> <span class="tl-badge">on hold</span>' in text_of(operator.get(INVENTORY))

    def test_can_show_those_alone_that_a_clock_starts(self, operator):
        with only_timelines(Nightly, Care):
            every, few = (text_of(operator.get(INVENTORY, given)) for given in ({}, {"starts": "clock"}))
        with only_timelines(Care):
            without = text_of(operator.get(INVENTORY))

        assert 'id="care"' in every
        assert 'id="nightly"' in few
        assert 'id="care"' not in few
        assert '<a href="?starts=clock" aria-current="true">By the clock only</a>' in few
        assert "By the clock only" not in without

    def test_says_how_the_last_run_ended_and_how_many_of_its_tasks_failed(self, operator, order, about, now, clock):
        other = Order.objects.create()
        for each in (order, other):
            emit("order.placed", each)
        emit("order.returned", order)
        clock.advance(hours=1)
        emit("order.returned", other)
        for each, tasks in ((order, 3), (other, 2)):
            run = TimelineRun.objects.for_entity(each).get()
            for number in range(tasks):
                failed = {"state": State.DISCARDED, "reason_code": "error", "finished_at": now}
                about(each, run=run, task_key="care.call", occurrence=str(number), **failed)

        response = operator.get(INVENTORY)

        assert f"last {now + timedelta(hours=1):%a %Y-%m-%d %H:%M}: returned" in text_of(response)
        assert "2 tasks failed, care" in links(response, "tl-tally")
        assert f"last {now + timedelta(hours=1):%a %Y-%m-%d %H:%M}: returned" in text_of(operator.get(CARE))

    def test_counts_open_tasks_that_the_code_does_not_have(self, operator, order, about):
        for hours in (1, 2):
            about(order, hours, task_key="care.dropped")
        about(order, 1, task_key="care.dropped", state=State.COMPLETED)

        page = text_of(operator.get(INVENTORY))

        plan = reverse("admin:timeline_scheduledtask_plan")
        assert f'<a class="tl-tally tl-t-overdue" href="{plan}?timeline=care">2 orphaned</a>' in page
        assert "2 open tasks have no code here any more." in text_of(operator.get(CARE))

    def test_counts_lead_to_lists_of_just_these(self, operator, rows):
        found = links(operator.get(INVENTORY), "tl-tally")

        assert list(found) == ["4 open, care", "1 overdue, care", "1 failed in 7 days, care"]
        assert_leads_to_as_many(operator, found)

    def test_says_how_many_runs_there_are(self, operator, order):
        emit("order.placed", order)

        page = text_of(operator.get(INVENTORY))

        assert '1 open <span class="tl-quiet tl-doc">1 started, 0 ended in 7 days</span>' in page

    def test_says_that_there_is_none(self, operator):
        with only_timelines():
            assert "There are no timelines." in text_of(operator.get(INVENTORY))

    def test_takes_as_many_statements_for_many_tasks(self, operator, rows, about, order, django_assert_num_queries):
        with django_assert_num_queries(8) as few:
            operator.get(INVENTORY)
        for _ in range(20):
            about(order, state=State.DISCARDED)

        with django_assert_num_queries(len(few)):
            operator.get(INVENTORY)


class TestOne:
    def test_shows_what_is_declared_and_how_it_went(self, operator, rows):
        page = text_of(operator.get(CARE))

        assert "About orders; its follow-up is foreseen." in page
        assert "3 days after the start of the run" in page
        assert 'aria-label="The timeline care"' in page
        assert "■ order.returned → returned" in page
        assert "discarded" in page

    def test_leads_to_the_dead_letters_of_just_a_task(self, operator, rows):
        dead = f"{reverse('admin:timeline_scheduledtask_dead')}?task=care.greet"

        assert f'<a href="{dead}">2</a>' in text_of(operator.get(CARE))
        assert "2 tasks</span>" in text_of(operator.get(dead))

    @pytest.mark.parametrize("within", ["tl-t-chip", "tl-tally"])
    def test_counts_lead_to_lists_of_just_these(self, operator, rows, within):
        found = links(operator.get(CARE), within)

        assert list(found) == [
            "3 open, care.greet",
            "1 overdue, care.greet",
            "1 failed in 7 days, care.greet",
            "2 cancelled: exit, care.greet",
            "1 cancelled: guard, care.greet",
            "1 open, care.follow_up",
        ]
        assert_leads_to_as_many(operator, found)

    def test_says_the_next_times_of_the_clock(self, operator):
        with only_timelines(Nightly):
            page = text_of(operator.get(reverse("admin:timeline_scheduledtask_timeline", args=["nightly"])))

        for day in range(2, 7):
            assert f"2026-03-0{day} 01:00</time>" in page

    def test_shows_of_a_machine_its_table_and_how_many_runs_are_where(self, operator, order):
        with only_timelines(Door):
            emit("door.made", order)
            page = text_of(operator.get(reverse("admin:timeline_scheduledtask_timeline", args=["door"])))

        assert 'aria-label="The machine door"' in page
        assert re.search(r'<text class="tl-m-here"[^>]*>1 now</text>', page)

    def test_says_of_a_machine_in_words_what_is_no_state(self, operator):
        with only_timelines(Booking):
            page = text_of(operator.get(reverse("admin:timeline_scheduledtask_timeline", args=["booking"])))

        assert "<br>operator.resolved → back<br>" in page
        assert "portal.heartbeat → nothing" in page
        assert [mark for mark in ("→ BACK", "→ IGNORE", "→ STAY", "``") if mark in page] == []

    def test_shows_the_picture_before_the_words_of_the_table(self, operator):
        with only_timelines(Door):
            page = text_of(operator.get(reverse("admin:timeline_scheduledtask_timeline", args=["door"])))

        assert page.index("<h2>Picture</h2>") < page.index("<h2>States</h2>") < page.index("<dt>shut</dt>")

    def test_says_how_many_of_its_oldest_runs_may_differ(self, operator, clock, monkeypatch):
        for number in range(3):
            emit("order.placed", Order.objects.create(pk=number + 1))

        assert "No open run differs from it." in text_of(operator.get(CARE))
        with only_timelines(type("Later", (Timeline,), {"name": "care", "entity": "testapp.Order", "greet": LATER})):
            whole = text_of(operator.get(CARE))
            monkeypatch.setattr(timeline_pages, "OLDEST", 2)
            part = text_of(operator.get(CARE))

        assert "3 of 3 open runs may differ from it." in whole
        assert "2 of the 2 oldest open runs may differ from it; the others were not looked at." in part

    def test_takes_at_most_twelve_statements_by_a_clock(self, operator, now, django_assert_max_num_queries):
        with only_timelines(Nightly):
            recur(NextBeginnings(), now=now, using="default")
            for where in (INVENTORY, CARE.replace("care", "nightly")):
                with django_assert_max_num_queries(12):
                    assert operator.get(where).status_code == 200

    def test_leads_to_its_plan(self, operator):
        assert f"{reverse('admin:timeline_scheduledtask_plan')}?timeline=care" in text_of(operator.get(CARE))

    def test_is_not_there_for_a_name_of_nothing(self, operator):
        assert operator.get(reverse("admin:timeline_scheduledtask_timeline", args=["nothing"])).status_code == 404

    def test_takes_as_many_statements_for_many_tasks(self, operator, rows, about, order, django_assert_num_queries):
        with django_assert_num_queries(10) as few:
            operator.get(CARE)
        for _ in range(20):
            about(order, state=State.DISCARDED)

        with django_assert_num_queries(len(few)):
            operator.get(CARE)

    def test_speaks_german(self, operator, rows):
        page = text_of(operator.get(CARE, headers={"accept-language": "de"}))

        assert "3 offen" in page
        assert "Ab Beginn des Laufs" in page


class TestWho:
    @pytest.mark.parametrize("where", [INVENTORY, CARE, CARE.replace("care", "nothing")])
    def test_may_not_view_all_tasks_sees_none_of_it(self, person, browse, rows, where):
        assert browse(person("nora")).get(where).status_code in (302, 403)
        assert browse(person("mia", "view_payload")).get(where).status_code == 403

    def test_sees_fewer_by_a_policy_has_those_counted_and_no_runs(self, operator, about, order, person, settings):
        settings.TIMELINE = settings.TIMELINE | {"POLICY": f"{__name__}.OnlyOrders"}
        emit("order.placed", order)
        about(person("nora"), task_key="account.welcome")

        response = operator.get(INVENTORY)

        assert list(links(response, "tl-tally")) == ["1 open, care"]
        assert "started" not in text_of(response)
        with only_timelines(Account, Care):
            one = operator.get(reverse("admin:timeline_scheduledtask_timeline", args=["account"]))
        assert links(one, "tl-tally") == {}


def assert_leads_to_as_many(operator, found):
    for said, where in found.items():
        shown = operator.get(where).context["bands"]
        assert sum(len(band.rows) for band in shown) == int(said.split()[0]), said
