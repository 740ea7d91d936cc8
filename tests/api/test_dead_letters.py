"""``dead-letters/``."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.api.test_repeating import send
from tests.api.test_tasks import problem
from timeline.api import dead_letters as view
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.shortcuts import redrive

ONE, OTHER = "1" * 16, "2" * 16


@pytest.fixture
def dead(about, ada):
    def make(count=1, fingerprint=ONE, user=ada):
        rows = [
            about("account.call", user, state=State.DISCARDED, attempt=1, error="ValueError: secret")
            for _ in range(count)
        ]
        ScheduledTask.objects.filter(pk__in=[row.pk for row in rows]).update(fingerprint=fingerprint)
        return rows

    return make


def again():
    return ScheduledTask.objects.filter(previous__isnull=False)


class TestGroups:
    def test_lists_what_failed_alike(self, by_staff, dead):
        rows = dead(3)
        dead(1, OTHER)

        found = by_staff.get("dead-letters/").json()

        assert {each["group"]: each["count"] for each in found} == {ONE: 3, OTHER: 1}
        [one] = by_staff.get(f"dead-letters/?group={ONE}").json()
        assert (one["task"], one["sample"]) == ("account.call", str(max(row.pk for row in rows)))

    def test_quotes_no_error_to_whoever_may_not_read_it(self, asked_by, ada, dead):
        dead()

        [found] = asked_by(ada).get("dead-letters/").json()

        assert "secret" not in str(found)

    def test_counts_only_what_is_seen(self, asked_by, ada, dead, person):
        dead()
        dead(2, user=person("other", is_staff=False))

        assert [each["count"] for each in asked_by(ada).get("dead-letters/").json()] == [1]

    def test_takes_as_many_statements_for_many(self, by_staff, dead, django_assert_max_num_queries):
        for number in range(12):
            dead(2, f"{number:016}")

        with django_assert_max_num_queries(8):
            by_staff.get("dead-letters/")


class TestRedrive:
    def test_runs_all_again(self, by_staff, dead, staff):
        rows = dead(3)

        answer = by_staff.post(f"dead-letters/{ONE}/redrive/", {"reason": "mended"})

        assert answer.json() == {"redriven": 3, "left": [], "next": None}
        assert {(row.previous_id, row.reason, row.actor) for row in again()} == {
            (row.pk, "mended", staff.email) for row in rows
        }

    def test_goes_on_where_it_stopped(self, by_staff, dead, monkeypatch):
        monkeypatch.setattr(view, "AT_A_TIME", 2)
        dead(5)

        counts, after = [], None
        while not counts or after:
            found = by_staff.post(f"dead-letters/{ONE}/redrive/", {"reason": "mended", "after": after}).json()
            counts.append(found["redriven"])
            after = found["next"]

        assert (counts, again().count()) == ([2, 2, 1], 5)

    def test_names_what_cannot_be_redriven(self, by_staff, dead):
        row, _other = dead(2)
        [later] = redrive(row, reason="by hand")
        ScheduledTask.objects.filter(pk=later.pk).update(previous=None)

        found = by_staff.post(f"dead-letters/{ONE}/redrive/", {"reason": "mended"}).json()

        assert found["redriven"] == 1
        assert [each["task"] for each in found["left"]] == [str(row.pk)]

    def test_spreads_them(self, by_staff, dead, clock):
        dead(40)

        by_staff.post(f"dead-letters/{ONE}/redrive/", {"reason": "mended", "spread_seconds": 3600.0})

        due = set(again().values_list("scheduled_at", flat=True))
        assert len(due) > 30
        assert clock.now <= min(due) <= max(due) <= clock.now + timedelta(hours=1)

    def test_acts_once_for_a_key(self, by_staff, dead):
        dead(3)
        first = send(by_staff, f"dead-letters/{ONE}/redrive/", {"reason": "mended"})

        repeated = send(by_staff, f"dead-letters/{ONE}/redrive/", {"reason": "mended"})

        assert (repeated.status_code, repeated.json()) == (200, first.json())
        assert again().count() == 3

    def test_has_nothing_left_to_do_when_all_run_again(self, by_staff, dead):
        dead()
        by_staff.post(f"dead-letters/{ONE}/redrive/", {"reason": "mended"})

        found = by_staff.post(f"dead-letters/{ONE}/redrive/", {"reason": "mended"})

        assert found.json() == {"redriven": 0, "left": [], "next": None}

    @pytest.mark.parametrize("group", [OTHER, "account.call", "nul%00"])
    def test_finds_no_group_that_is_not_there(self, by_staff, dead, group):
        dead()

        assert by_staff.post(f"dead-letters/{group}/redrive/", {"reason": "mended"}).status_code == 404

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({}, "reason"),
            ({"reason": "x", "spread_seconds": 0}, "spread_seconds"),
            ({"reason": "x", "spread_seconds": "60"}, "spread_seconds"),
            ({"reason": "x", "spread_seconds": 60.5}, "spread_seconds"),
            ({"reason": "x", "spread_seconds": True}, "spread_seconds"),
            ({"reason": "x", "spread_seconds": 31 * 86400}, "spread_seconds"),
            ({"reason": "x", "after": "first"}, "after"),
            ({"reason": "x", "to": "me"}, "to"),
        ],
    )
    def test_names_what_is_wrong_and_runs_nothing(self, by_staff, dead, body, field):
        dead()

        answer = by_staff.post(f"dead-letters/{ONE}/redrive/", body)

        assert problem(answer, 400)["field"] == field
        assert not again().exists()
