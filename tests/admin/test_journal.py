"""Who did what: what people have decided, the latest first, as far as who looks may read it."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import parse_qsl

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.admin.conftest import ENTITY, detail, text_of
from tests.testapp.models import Order
from timeline.lifecycle import Reason
from timeline.models import ScheduledTask
from timeline.operations.cancel import cancel
from timeline.policy import TimelinePolicy
from timeline.reading import deeds as reading
from timeline.shortcuts import emit, hold, move, redrive, release, run_now, start

JOURNAL = reverse("admin:timeline_scheduledtask_journal")


def cancelled(*rows, actor="ada", reason="not wanted", now):
    cancel(task_ids=[row.pk for row in rows], reason=Reason.operator(reason, actor), now=now, using="default")


def said(client, **given):
    """Actor, verb, count and reason of each line."""
    found = client.get(JOURNAL, given).context["lines"]
    return [(line.deed.actor, line.deed.verb, line.deed.count, line.deed.reason) for line in found]


@pytest.fixture
def seer(person, browse):
    """Reads all tasks and holds."""
    return browse(person("sina", "view_scheduledtask", "view_hold"))


class TestJournal:
    def test_tells_what_people_did_the_latest_first(self, seer, about, order, clock):
        first, second, third = about(order, 5), about(order, 6), about(order, 7)
        move(first, at=clock.now + timedelta(days=2), reason="later", actor="ada")
        clock.advance(hours=1)
        cancelled(second, now=clock.now)
        clock.advance(hours=1)
        run_now(third, reason="they wait", actor="ben")
        clock.advance(hours=1)
        redrive(ScheduledTask.objects.get(pk=second.pk), reason="a mistake", actor="ben")

        assert said(seer) == [
            ("ben", "ran again", 1, "a mistake"),
            ("ben", "had run now", 1, "they wait"),
            ("ada", "cancelled", 1, "not wanted"),
            ("ada", "moved", 1, "later"),
        ]

    def test_leads_to_the_task_its_entity_and_all_of_who_did_it(self, seer, about, order, clock):
        row = about(order)
        cancelled(row, now=clock.now)

        page = text_of(seer.get(JOURNAL))

        assert detail(row) in page
        assert f'<a href="{ENTITY}?label=testapp.order&amp;id={order.pk}">order {order.pk}</a>' in page
        assert f'<a href="{JOURNAL}?actor=ada">ada</a>' in page

    def test_tells_of_holds_made_and_released(self, seer, order, clock):
        held = hold(order, reason="a dispute", actor="ada")
        clock.advance(hours=1)
        release(held, actor="ben", reason="they agree")

        assert said(seer) == [("ben", "released", 1, "they agree"), ("ada", "put on hold", 1, "a dispute")]

    def test_puts_together_what_was_done_to_several(self, seer, about, clock):
        cancelled(*(about(Order.objects.create()) for _ in range(5)), now=clock.now)

        page = text_of(seer.get(JOURNAL))

        assert said(seer) == [("ada", "cancelled", 5, "not wanted")]
        assert "5 tasks:" in page
        assert "and 2 more" in page

    def test_leaves_out_what_an_event_has_ended(self, seer, order, clock):
        """Of customers who pay, the page would be full."""
        start("care", order)
        emit("order.returned", order, actor="ada")

        assert said(seer) == []

    def test_leaves_out_what_no_person_did(self, seer, about, order, clock):
        about(order, -1)
        clock.run_due()

        assert said(seer) == []
        assert "Nothing of this kind that you may read was done here." in text_of(seer.get(JOURNAL))

    def test_shows_what_one_did_and_what_was_done_on_a_day(self, seer, about, order, clock):
        cancelled(about(order), now=clock.now, actor="ada")
        day = clock.now.date()
        clock.advance(days=1)
        cancelled(about(order), now=clock.now, actor="ben")
        hold(order, reason="x", actor="ben")

        assert [line[0] for line in said(seer, actor="ada")] == ["ada"]
        assert [line[0] for line in said(seer, day=day)] == ["ada"]
        assert [line[0] for line in said(seer, day=day + timedelta(days=1))] == ["ben", "ben"]
        assert said(seer, actor="nobody") == []

    @pytest.mark.parametrize(
        "given",
        [
            {"day": "x"},
            {"day": "0001-01-01"},
            {"day": "9999-12-31"},
            {"before": "x"},
            {"before": "2026-01-01~1"},
            {"before": "2026-01-01T00:00:00+00:00~-1"},
            {"actor": "\x00"},
        ],
    )
    def test_passes_over_what_makes_no_sense(self, seer, given):
        assert seer.get(JOURNAL, given).status_code == 200

    def test_is_paged_and_leaves_out_nothing(self, seer, about, order, clock, monkeypatch):
        """Also where many entries have one time, and holds are of the moment at which a page ends."""
        monkeypatch.setattr(reading, "MOST", 3)
        for number in range(4):
            cancelled(about(order), about(order), reason=f"{number}", now=clock.now)
            hold(order, reason=f"h{number}", actor="ada")
            clock.advance(hours=1)

        found, where = [], JOURNAL
        while where:
            context = seer.get(where).context
            found += [line.deed for line in context["lines"]]
            where = JOURNAL + context["more"] if context["more"] else ""

        assert sum(deed.count for deed in found if deed.task) == 8
        assert [deed.reason for deed in found if deed.hold] == ["h3", "h2", "h1", "h0"]
        assert [deed.at for deed in found] == sorted((deed.at for deed in found), reverse=True)

    def test_costs_as_many_statements_for_many_as_for_few(self, person, browse, about, clock):
        browser = browse(person("root", is_superuser=True, is_staff=True))

        def statements():
            with CaptureQueriesContext(connection) as queries:
                browser.get(JOURNAL)
            return len(queries)

        for actor in "ab":
            cancelled(about(Order.objects.create()), actor=actor, now=clock.now)
        few = statements()
        for number in range(30):
            cancelled(about(Order.objects.create()), actor=f"{number}", now=clock.now)

        assert statements() == few <= 12

    @pytest.mark.only_postgresql  # Its planner says which index it takes.
    @pytest.mark.parametrize("actor", ["", "ada"])
    def test_reads_the_index_of_what_people_decided(self, about, clock, actor):
        cancelled(about(Order.objects.create()), now=clock.now)
        entries = reading.entries_of_people(actor=actor, begin=None, end=clock.now, using="default")

        with connection.cursor() as cursor:
            cursor.execute(
                "SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; SET LOCAL enable_bitmapscan = off"
            )
            plan = entries[:10].explain()

        assert "timeline_log_people" in plan
        assert "Sort" not in plan


class Hushed(TimelinePolicy):
    """Says of nobody who decided."""

    def sees_decisions(self, user, task):
        return False


class OfOne(TimelinePolicy):
    """Shows the tasks of one order."""

    shown = ""

    def visible(self, tasks, user):
        return super().visible(tasks, user).filter(entity_id=self.shown)


class TestWhoMayRead:
    def test_is_for_who_sees_all_tasks(self, person, browse):
        assert browse(person("nora", "view_hold")).get(JOURNAL).status_code == 403

    def test_keeps_from_who_may_not_read_who_decided(self, seer, about, order, clock, settings):
        cancelled(about(order), now=clock.now)
        settings.TIMELINE = settings.TIMELINE | {"POLICY": "tests.admin.test_journal.Hushed"}

        assert said(seer) == []

    def test_keeps_tasks_that_are_not_shown(self, seer, about, order, clock, settings, monkeypatch):
        other = Order.objects.create()
        cancelled(about(order), now=clock.now, reason="hers")
        cancelled(about(other), now=clock.now, reason="his")
        monkeypatch.setattr(OfOne, "shown", str(other.pk))
        settings.TIMELINE = settings.TIMELINE | {"POLICY": "tests.admin.test_journal.OfOne"}

        assert [line[3] for line in said(seer)] == ["his"]

    def test_leaves_out_no_hold_where_there_are_more_than_on_a_page(self, seer, about, order, clock, monkeypatch):
        monkeypatch.setattr(reading, "MOST", 3)
        cancelled(about(order), now=clock.now, reason="before")
        for number in range(8):
            clock.advance(minutes=1)
            release(hold(order, reason=f"h{number}", actor="ada"), actor="ben", reason=f"r{number}")
        clock.advance(minutes=1)
        cancelled(about(order), now=clock.now, reason="behind")

        found, given = [], {}
        while given is not None:
            page = seer.get(JOURNAL, given)
            found += [line.deed.reason for line in page.context["lines"]]
            more = page.context["more"]
            given = dict(parse_qsl(more.removeprefix("?"))) if more else None

        assert len(found) == len(set(found))
        assert set(found) == {"before", "behind", *(f"{what}{number}" for what in "hr" for number in range(8))}

    def test_keeps_holds_from_who_may_not_see_them(self, person, browse, order):
        hold(order, reason="a dispute", actor="ada")

        assert said(browse(person("vera", "view_scheduledtask"))) == []

    def test_names_nobody_on_hold_whom_the_hosts_policy_hides(self, seer, order, settings):
        hold(order, reason="a dispute", actor="ada")
        link = f'<a href="{ENTITY}?label='
        assert link in text_of(seer.get(JOURNAL))

        settings.TIMELINE = settings.TIMELINE | {"POLICY": "tests.admin.test_people.Hiding"}

        page = text_of(seer.get(JOURNAL))
        assert link not in page
        assert f"testapp.order {order.pk}" in page


class TestTheWayThere:
    @pytest.mark.parametrize("name", ["attention", "health"])
    def test_is_on_pages_of_the_operator(self, seer, name):
        assert f'href="{JOURNAL}"' in text_of(seer.get(reverse(f"admin:timeline_scheduledtask_{name}")))

    def test_is_the_name_of_who_did_it_on_the_page_of_a_task(self, seer, about, order, clock):
        row = about(order)
        cancelled(row, now=clock.now)

        assert f'<a href="{JOURNAL}?actor=ada">ada</a>' in text_of(seer.get(detail(row)))


@pytest.mark.parametrize("place", ["0001-01-01T00:00:00+14:00~1", "9999-12-31T23:59:59-14:00~1", "2026-01-01~1", "~"])
def test_begins_at_the_latest_where_the_address_names_no_place(operator, about, clock, place):
    cancelled(about(Order.objects.create()), now=clock.now)

    assert said(operator, before=place) == [("ada", "cancelled", 1, "not wanted")]
