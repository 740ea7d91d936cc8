"""``tasks/bulk/``."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from tests.api import conftest as api
from tests.api.test_repeating import send
from tests.api.test_tasks import problem
from timeline.features.bulk_actions.poll import act_in_bulk
from timeline.lifecycle import State
from timeline.models import BulkAction, ScheduledTask

_asks_for_the_first_time = api._asks_for_the_first_time  # Fixtures.
_only_these = api._only_these
about = api.about
ada = api.ada
asked_by = api.asked_by
by_staff = api.by_staff
person = api.person
staff = api.staff

ALL = {"action": "cancel", "filter": {"task": "account.call"}, "reason": "no longer true"}


@pytest.fixture
def polled(clock):
    def poll():
        return act_in_bulk(now=clock.now, using="default")

    return poll


class TestAsk:
    def test_is_accepted_done_by_polls_and_watched(self, by_staff, about, ada, staff, polled):
        rows = [about("account.call", ada) for _ in range(3)]
        about("account.greet", ada)

        answer = by_staff.post("tasks/bulk/", ALL)
        begun = answer.json()
        polled()
        ended = by_staff.client.get(answer.headers["Location"]).json()

        assert (answer.status_code, begun["state"], begun["matched"], begun["done"]) == (202, "running", 3, 0)
        assert (ended["id"], ended["state"], ended["done"]) == (begun["id"], "done", 3)
        assert set(ended["skipped"].values()) == {0}
        cancelled = ScheduledTask.objects.filter(state=State.CANCELLED)
        assert {(row.pk, row.actor) for row in cancelled} == {(row.pk, staff.email) for row in rows}

    def test_moves_each_from_its_own_time(self, by_staff, about, ada, polled, clock):
        waiting = about("account.call", ada, scheduled_at=clock.now + timedelta(hours=5))
        due = about("account.call", ada, scheduled_at=clock.now - timedelta(hours=1), state=State.AVAILABLE)
        asked = {**ALL, "action": "move", "by_days": 2, "by_seconds": -3600}

        begun = by_staff.post("tasks/bulk/", asked).json()
        polled()
        polled()

        by = timedelta(days=2, hours=-1)
        moved = ScheduledTask.objects.open().values_list("scheduled_at", flat=True)
        assert sorted(moved) == sorted([waiting.scheduled_at + by, due.scheduled_at + by])
        done = by_staff.get(f"tasks/bulk/{begun['id']}/").json()
        assert (done["state"], done["done"]) == ("done", 2)
        assert (done["at"], done["by_days"], done["by_seconds"]) == (None, 2, -3600)

    def test_leaves_what_would_come_to_lie_outside_of_time(self, by_staff, about, ada, polled, clock):
        rows = [about("account.call", ada) for _ in range(2)]
        asked = {**ALL, "action": "move", "by_days": -36_525}

        begun = by_staff.post("tasks/bulk/", asked).json()
        polled()

        done = by_staff.get(f"tasks/bulk/{begun['id']}/").json()
        assert (done["done"], done["skipped"]["refused"]) == (0, len(rows))

    def test_redrives_a_group_of_dead_letters_that_had_failed_by_then(self, by_staff, about, ada, polled, clock):
        dead = [about("account.call", ada, state=State.DISCARDED, fingerprint="1" * 16) for _ in range(3)]
        about("account.call", ada, state=State.DISCARDED, fingerprint="2" * 16)
        failing = about("account.call", ada, state=State.ACTIVE, lease_expires_at=clock.now)

        begun = by_staff.post("tasks/bulk/", {**ALL, "action": "redrive", "filter": {"group": "1" * 16}}).json()
        clock.advance(minutes=1)
        failed = {"state": State.DISCARDED, "finished_at": clock.now, "reason_code": "error", "fingerprint": "1" * 16}
        ScheduledTask.objects.filter(pk=failing.pk).update(**failed, lease_expires_at=None)
        polled()

        again = ScheduledTask.objects.filter(previous__isnull=False)
        assert set(again.values_list("previous", flat=True)) == {row.pk for row in dead}
        done = by_staff.get(f"tasks/bulk/{begun['id']}/").json()
        assert (begun["matched"], done["state"], done["done"]) == (3, "done", 3)
        assert done["skipped"]["changed"] == 0

    def test_dry_run_counts_and_changes_nothing(self, by_staff, about, ada, polled):
        waiting = about("account.call", ada, payload={"word": "secret"})
        about("account.call", ada, state=State.COMPLETED)

        answer = by_staff.post("tasks/bulk/", {**ALL, "dry_run": True})

        found = answer.json()
        assert (answer.status_code, found["matched"]) == (200, 1)
        assert found["states"] == {"scheduled": 1, "completed": 1}
        assert [row["id"] for row in found["sample"]] == [str(waiting.pk)]
        assert not BulkAction.objects.exists()
        assert polled() == 0

    def test_dry_run_takes_as_many_statements_for_many(self, by_staff, about, ada, django_assert_max_num_queries):
        for _ in range(12):
            about("account.call", ada)

        with django_assert_max_num_queries(9):
            by_staff.post("tasks/bulk/", {**ALL, "dry_run": True})

    def test_takes_the_filters_of_the_list(self, by_staff, about, ada, now):
        meant = about("account.call", ada, scheduled_at=now)
        about("account.call", ada, scheduled_at=now.replace(year=now.year + 1))
        named = {
            "state": ["scheduled", "retryable"],
            "timeline": "account",
            "due_after": now.isoformat(),
            "due_before": now.replace(day=now.day + 1).isoformat(),
        }

        found = by_staff.post("tasks/bulk/", {**ALL, "filter": named, "dry_run": True}).json()
        begun = by_staff.post("tasks/bulk/", {**ALL, "filter": named}).json()

        assert [row["id"] for row in found["sample"]] == [str(meant.pk)]
        assert (found["matched"], begun["matched"]) == (1, 1)

    def test_acts_once_for_a_key(self, by_staff, about, ada):
        about("account.call", ada)

        first = send(by_staff, "tasks/bulk/", ALL, key="a")
        again = send(by_staff, "tasks/bulk/", ALL, key="a")
        other = send(by_staff, "tasks/bulk/", {**ALL, "reason": "another"}, key="a")

        assert (first.status_code, again.status_code, other.status_code) == (202, 202, 422)
        assert (again.json(), again.headers["Location"]) == (first.json(), first.headers["Location"])
        assert BulkAction.objects.count() == 1

    @pytest.mark.parametrize(
        ("change", "field"),
        [
            ({"filter": {}}, "filter"),
            ({"filter": {"stat": ["scheduled"]}}, "filter.stat"),
            ({"filter": {"state": ["waiting"]}}, "filter.state.0"),
            ({"filter": {"due_after": "2026-01-01"}}, "filter.due_after"),
            ({"filter": {"task": "a\x00b"}}, "filter.task"),
            ({"filter": None}, "filter"),
            ({"action": "approve"}, "action"),
            ({"action": "move"}, "at"),
            ({"action": "move", "at": "9500-01-01T00:00:00Z"}, "at"),
            ({"at": "2027-01-01T00:00:00Z"}, "at"),
            ({"action": "move", "at": "2027-01-01T00:00:00Z", "by_days": 1}, "at"),
            ({"action": "move", "by_days": 0, "by_seconds": 0}, "at"),
            ({"action": "move", "by_days": 40_000}, "by_days"),
            ({"action": "move", "by_seconds": -(10**9) - 1}, "by_seconds"),
            ({"action": "move", "by_days": 1.5}, "by_days"),
            ({"by_days": 1}, "by_days"),
            ({"action": "run_now", "by_seconds": 60}, "by_seconds"),
            ({"spread_seconds": 60}, "spread_seconds"),
            ({"reason": " "}, "reason"),
        ],
    )
    def test_refuses_what_makes_no_sense(self, by_staff, about, ada, change, field):
        about("account.call", ada)

        answer = by_staff.post("tasks/bulk/", {**ALL, **change})

        assert problem(answer, 400)["field"] == field
        assert not BulkAction.objects.exists()

    def test_is_refused_to_who_may_do_something_else(self, asked_by, person, about, ada):
        about("account.call", ada)
        mover = person("mover", "view_scheduledtask", "move_scheduledtask")

        problem(asked_by(mover).post("tasks/bulk/", ALL), 403)

    def test_means_only_what_is_seen(self, asked_by, person, about, ada, polled):
        """Who may cancel and not view sees what is their own, and nothing else."""
        row = about("account.call", ada)
        blind = person("blind", "cancel_scheduledtask")
        own = about("account.call", blind)

        begun = asked_by(blind).post("tasks/bulk/", ALL).json()
        polled()

        row.refresh_from_db()
        own.refresh_from_db()
        assert (begun["matched"], row.state, own.state) == (1, State.SCHEDULED, State.CANCELLED)


class TestProgress:
    def test_is_its_askers_and_of_who_may_view_tasks(self, asked_by, by_staff, person, about, ada):
        blind = asked_by(person("blind", "cancel_scheduledtask"))
        others = asked_by(person("others", "cancel_scheduledtask"))
        key = blind.post("tasks/bulk/", ALL).json()["id"]

        assert [asker.get(f"tasks/bulk/{key}/").status_code for asker in (blind, by_staff, others)] == [200, 200, 404]

    def test_of_none_that_is_there(self, by_staff):
        problem(by_staff.get(f"tasks/bulk/{uuid4()}/"), 404)


class TestStop:
    def test_leaves_what_was_not_done(self, by_staff, about, ada, staff, polled):
        about("account.call", ada)
        key = by_staff.post("tasks/bulk/", ALL).json()["id"]

        stopped = by_staff.post(f"tasks/bulk/{key}/stop/").json()

        assert polled() == 0
        assert (stopped["state"], stopped["stopped_by"], stopped["done"]) == ("stopped", staff.email, 0)
        assert by_staff.post(f"tasks/bulk/{key}/stop/").json() == stopped
