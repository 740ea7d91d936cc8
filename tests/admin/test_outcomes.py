"""Old and new: what the pages say an action will make of a task, before somebody confirms it."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from tests.admin.conftest import ACT, text_of
from tests.testapp.models import Order
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.shortcuts import start

ALL_OF_IT = reverse("admin:timeline_scheduledtask_matching")
DAY = timedelta(days=1)


@pytest.fixture
def greeting(order, clock):
    """Due in three days; seven days after it, something follows."""
    return start("care", order).run.tasks.get(task_key="care.greet")


def becomes(response):
    """What the page says of each task, as plain text, in order."""
    found = re.findall(r'<tr class="tl-becomes">(.*?)</tr>', text_of(response))
    return [" ".join(re.sub(r"<[^>]*>", " ", each).split()) for each in found]


def ask(client, action, *rows, **given):
    return client.post(ACT, {"action": action, "task": [row.pk for row in rows], **given})


def look(client, row, **given):
    seen = f"{row.pk}:{row.seq}"
    return ask(client, "move", row, confirmed="1", look="1", seen=seen, reason="", **given)


def said(at):
    return f"{timezone.localtime(at):%Y-%m-%d %H:%M}"


class TestWhatAnActionMakesOfATask:
    def test_a_cancelled_one_does_not_run_nor_does_what_follows(self, operator, greeting):
        [told] = becomes(ask(operator, "cancel", greeting))

        at, follows = greeting.scheduled_at, greeting.scheduled_at + 7 * DAY
        assert f"Due {said(at)} → becomes it does not run" in told
        assert "State scheduled → becomes cancelled" in told
        assert f"Then care.follow_up : {said(follows)} → becomes it does not follow".replace(" :", ":") in told

    def test_one_that_runs_now_is_due_and_what_follows_comes_sooner(self, operator, greeting, clock):
        [told] = becomes(ask(operator, "run_now", greeting))

        assert f"Due {said(greeting.scheduled_at)} → becomes {said(clock.now)}" in told
        assert "State scheduled → becomes available" in told
        assert f"→ becomes {said(clock.now + 7 * DAY)}" in told

    def test_one_that_is_redriven_carries_on_in_another_row(self, operator, about, order, clock):
        [told] = becomes(ask(operator, "redrive", about(order, -5, state=State.DISCARDED)))

        assert f"→ becomes {said(clock.now)}" in told
        assert "discarded → becomes available in its next revision, which carries on" in told

    def test_of_a_move_nothing_is_said_until_its_time_is_known(self, operator, greeting):
        page = ask(operator, "move", greeting)

        assert becomes(page) == []
        assert "Show what changes" in text_of(page)
        assert "Show what changes" not in text_of(ask(operator, "cancel", greeting))

    def test_a_move_is_shown_first_and_changes_nothing(self, operator, greeting):
        page = look(operator, greeting, at="2026-04-01T12:00")

        [told] = becomes(page)
        assert f"Due {said(greeting.scheduled_at)} → becomes 2026-04-01 12:00" in told
        assert "→ becomes 2026-04-08 12:00" in told
        assert 'value="2026-04-01T12:00"' in text_of(page)
        greeting.refresh_from_db()
        assert greeting.seq == 0

    def test_a_move_that_is_wrong_shows_what_is_wrong(self, operator, greeting):
        page = look(operator, greeting, at="yesterday")

        assert becomes(page) == []
        assert "Enter a valid date/time." in text_of(page)

    def test_one_that_is_due_is_moved_in_its_next_revision(self, operator, about, order, clock):
        row = about(order, -5, state=State.AVAILABLE)

        [told] = becomes(look(operator, row, days="1"))

        assert f"→ becomes {said(row.scheduled_at + DAY)}" in told
        assert "available → becomes scheduled in its next revision" in told

    def test_what_cannot_change_has_none(self, operator, about, order):
        page = ask(operator, "cancel", about(order), about(order, state=State.COMPLETED))

        assert len(becomes(page)) == 1

    def test_asks_as_often_for_one_as_for_many(self, operator, clock):
        counts = []
        for number in (1, 12):
            runs = [start("care", Order.objects.create()).run for _each in range(number)]
            rows = list(ScheduledTask.objects.filter(run__in=runs))
            with CaptureQueriesContext(connection) as queries:
                assert len(becomes(ask(operator, "cancel", *rows))) == number
            counts.append(len(queries))

        assert counts[0] == counts[1] <= 12


class TestAMoveBySoMuch:
    def test_keeps_each_ones_own_time(self, operator, about, order):
        first, second = about(order, 5), about(order, 50)
        seen = [f"{row.pk}:{row.seq}" for row in (first, second)]

        page = ask(operator, "move", first, second, confirmed="1", seen=seen, days="2", hours="-3", reason="later")

        assert page.status_code == 302
        for row in (first, second):
            before = row.scheduled_at
            row.refresh_from_db()
            assert row.scheduled_at == before + 2 * DAY - timedelta(hours=3)

    def test_keeps_its_hour_where_clocks_change(self, operator, about, order, settings, clock):
        settings.TIME_ZONE = "Europe/Berlin"
        row = about(order)
        at = datetime(2026, 3, 28, 9, tzinfo=ZoneInfo("Europe/Berlin"))
        ScheduledTask.objects.filter(pk=row.pk).update(scheduled_at=at)

        [told] = becomes(look(operator, row, days="2"))

        assert "2026-03-28 09:00 → becomes 2026-03-30 09:00" in told

    @pytest.mark.parametrize(
        ("given", "problem"),
        [
            ({}, "Give a time, or by how much to move."),
            ({"days": "0", "hours": "0"}, "Give a time, or by how much to move."),
            ({"at": "2026-04-01T12:00", "days": "1"}, "and not both"),
            ({"days": "40000"}, "less than or equal to 36525"),
            ({"hours": "x"}, "Enter a whole number."),
        ],
    )
    def test_is_refused_where_it_means_nothing(self, operator, about, order, given, problem):
        row = about(order)
        seen = f"{row.pk}:{row.seq}"

        page = ask(operator, "move", row, confirmed="1", seen=seen, reason="later", **given)

        assert problem in text_of(page)
        assert not row.log.exists()

    def test_moves_all_that_match_once_each(self, operator, about, order, monkeypatch):
        monkeypatch.setattr("timeline.admin.portions.PORTION", 2)
        monkeypatch.setattr("timeline.admin.portions.A_TURN", 0)
        rows = [about(Order.objects.create(), hours) for hours in (5, 6, 7)]
        rows += [about(Order.objects.create(), hours, state=State.AVAILABLE) for hours in (-3, -2)]
        where, given = f"{ALL_OF_IT}?task=care.call&action=move", {"days": "1", "reason": "later"}

        page = operator.post(where, given | {"look": "1"})
        assert len(becomes(page)) == 5
        assert ScheduledTask.objects.count() == 5
        for _portion in range(9):
            page = operator.post(where, given | hidden(page))
            if page.status_code == 302:
                break

        assert page.status_code == 302
        now_due = sorted(ScheduledTask.objects.open().values_list("scheduled_at", flat=True))
        assert now_due == sorted(row.scheduled_at + DAY for row in rows)


def hidden(page):
    names = ("before", "last", "after", "changed", "left", "total")
    return dict(re.findall(rf'name="({"|".join(names)})" value="([^"]*)"', text_of(page)))
