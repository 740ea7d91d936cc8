"""Diagnose: what is wrong is said, and nothing else is."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.triggers import drop_trigger
from timeline import Timeline, after, daily, task
from timeline.clocks import MachineTime
from timeline.features.recurring.verbs import NextBeginnings, recur
from timeline.lifecycle import OPEN, State
from timeline.models import Hold, Identity
from timeline.reading import attention, diagnosis
from timeline.reading.diagnosis import databases, diagnose
from timeline.store.site import sign_of_poller
from timeline.testing import only_timelines
from timeline.timing import EARLIEST


@pytest.fixture(autouse=True)
def _polled(db):
    sign_of_poller(using="default")


def look(now):
    return diagnose(now=now, using="default")


class TestDiagnose:
    def test_finds_nothing_wrong_where_all_is_well(self, make_task, now):
        make_task(scheduled_at=now + timedelta(days=1))
        make_task(scheduled_at=now)
        make_task(state=State.PENDING)
        make_task(state=State.ACTIVE)
        make_task(state=State.COMPLETED)

        found = look(now)

        assert (found.well, found.problems) == (True, [])
        assert (found.overdue, found.pending, found.active, found.stuck) == (0, 1, 1, 0)

    def test_sees_that_nobody_has_polled_for_three_intervals(self, now, settings):
        settings.TIMELINE = {"POLL_INTERVAL": timedelta(seconds=10)}
        Identity.objects.update(polled_at=MachineTime(timedelta(seconds=-29)))
        assert look(now).well

        Identity.objects.update(polled_at=MachineTime(timedelta(seconds=-31)))

        [problem] = look(now).problems
        assert problem.startswith("Nobody polls it.")

    def test_names_the_cause_alone_where_tasks_wait_since_nobody_polls(self, make_task, now):
        Identity.objects.update(polled_at=None)
        make_task(state=State.AVAILABLE, scheduled_at=now - timedelta(hours=1))

        [problem] = look(now).problems

        assert problem.startswith("Nobody polls it.")

    def test_sees_that_nobody_ever_polled(self, now):
        Identity.objects.update(polled_at=None)

        assert not look(now).is_polled

    @pytest.mark.parametrize("state", [State.SCHEDULED, State.RETRYABLE, State.AVAILABLE, State.PENDING])
    def test_sees_tasks_that_wait_for_too_long(self, make_task, now, state):
        make_task(state=state, scheduled_at=now - timedelta(seconds=61))

        found = look(now)

        assert (found.overdue, found.oldest_overdue_at) == (1, now - timedelta(seconds=61))
        assert [problem[:23] for problem in found.problems] == ["Tasks wait for too long"]

    def test_counts_what_is_a_little_late_and_is_content(self, make_task, now):
        make_task(state=State.AVAILABLE, scheduled_at=now - timedelta(seconds=30))

        found = look(now)

        assert (found.overdue, found.well) == (1, True)

    def test_sees_leases_that_nobody_took_over(self, make_task, now):
        make_task(state=State.ACTIVE, lease_expires_at=EARLIEST)

        found = look(now)

        assert found.stuck == 1
        assert "worker was lost" in found.problems[0]

    def test_leaves_polls_the_time_to_take_over(self, make_task, now):
        row = make_task(state=State.ACTIVE)
        type(row).objects.update(lease_expires_at=MachineTime(timedelta(seconds=-1)))

        assert look(now).stuck == 0

    def test_sees_a_missing_trigger(self, now):
        drop_trigger("guard_log")

        found = look(now)

        assert found.missing_triggers == ["guard_log"]
        assert "--skip-checks" in found.problems[0]

    def test_sees_open_tasks_that_no_timeline_declares(self, make_task, now):
        make_task(task_key="trial.gone", scheduled_at=now + timedelta(days=1))
        make_task(task_key="trial.ended", state=State.COMPLETED)

        found = look(now)

        assert found.unknown_task_keys == ["trial.gone"]
        assert found.undefined == [{"task_key": "trial.gone", "count": 1}]
        assert found.problems[0] == (
            "1 row has no definition any more: trial.gone (1). It rests until the code has it again, or somebody applies the "
            "plan: manage.py timeline_apply trial."
        )

    def test_counts_them_by_task_whatever_their_states_the_most_first(self, make_task, now):
        for state in sorted(OPEN):
            make_task(task_key="promo.call", state=state)
        make_task(task_key="gone.work")

        found = look(now)

        assert found.undefined == [{"task_key": "promo.call", "count": 5}, {"task_key": "gone.work", "count": 1}]
        said = "6 rows have no definition any more: promo.call (5), gone.work (1)."
        assert said in "".join(found.problems)
        assert "timeline_apply gone, manage.py timeline_apply promo" in "".join(found.problems)

    def test_stops_counting_them(self, make_task, now, monkeypatch):
        monkeypatch.setattr(diagnosis, "MAX_COUNTED", 2)
        monkeypatch.setattr(attention, "MAX_COUNTED", 2)
        for _ in range(4):
            make_task(task_key="promo.call")

        assert "promo.call (2 or more)" in "".join(look(now).problems)

    def test_sees_another_sites_database(self, now, settings):
        settings.TIMELINE = {"SITE": "staging"}
        Identity.objects.update(site="production")

        found = look(now)

        assert found.site == "production"
        assert "timeline_adopt" in found.problems[0]

    def test_asks_as_often_for_ten_rows_as_for_a_hundred(self, make_task, now):
        counts = []
        for number in (10, 90):
            for _ in range(number):
                make_task(state=State.AVAILABLE)
            with CaptureQueriesContext(connection) as queries:
                look(now)
            counts.append(len(queries))

        assert counts[0] == counts[1]


class TestDiscards:
    @pytest.fixture
    def discarded(self, make_task, now):
        """A task that was discarded so long ago: ``discarded(hours=1, …)``."""

        def make(*, hours=0, **columns):
            at = now - timedelta(hours=hours)
            given = {"state": State.DISCARDED, "scheduled_at": at, "finished_at": at, "reason_code": "error"} | columns
            return make_task(**given)

        return make

    def test_are_counted_by_task_with_the_newest_error(self, discarded, now):
        discarded(hours=3, error="ValueError: no such address")
        discarded(hours=1, error="smtplib.SMTPException: secret of somebody")
        discarded(hours=2, task_key="trial.expire", reason_code="worker_lost")
        discarded(
            hours=2, task_key="trial.tell", reason_code="timeout", error="timeline.exceptions.TimedOut: it took long"
        )

        found = look(now)

        assert found.discarded == 4
        assert found.discards == [
            {"task_key": "trial.remind", "count": 2, "error": "smtplib.SMTPException"},
            {"task_key": "trial.expire", "count": 1, "error": "worker_lost"},
            {"task_key": "trial.tell", "count": 1, "error": "timeout"},
        ]

    def test_are_not_well_though_what_is_due_is_run(self, discarded, now):
        discarded()

        found = look(now)

        assert (found.well, found.working) == (False, True)
        assert found.problems == []
        assert found.as_data()["well"] is False

    def test_are_forgotten_after_a_day(self, discarded, now):
        discarded(hours=25)

        found = look(now)

        assert (found.discarded, found.well) == (0, True)

    def test_are_seen_though_the_task_was_due_days_before(self, discarded, now):
        discarded(hours=1, scheduled_at=now - timedelta(days=6))

        assert look(now).discarded == 1

    def test_are_settled_by_a_redrive(self, discarded, make_task, now):
        first = discarded()
        make_task(previous=first, occurrence=first.occurrence, revision=2, scheduled_at=now + timedelta(days=1))

        assert look(now).discarded == 0

    def test_are_told_apart_from_what_was_cancelled(self, make_task, now):
        make_task(state=State.CANCELLED)

        assert look(now).discarded == 0

    def test_are_asked_for_in_as_many_statements_however_many_there_are(self, discarded, now):
        counts = []
        for number in (1, 30):
            for _ in range(number):
                discarded()
            with CaptureQueriesContext(connection) as queries:
                look(now)
            counts.append(len(queries))

        assert counts[0] == counts[1]


class TestRetrying:
    def test_counts_what_failed_and_waits_to_be_tried_again(self, make_task, now):
        later = now + timedelta(hours=1)
        make_task(state=State.RETRYABLE, failures=1, scheduled_at=later)
        make_task(state=State.RETRYABLE, scheduled_at=later)

        found = look(now)

        assert (found.retrying, found.well) == (1, True)


class TestDatabases:
    def test_are_those_that_have_tasks(self):
        assert databases() == ["default", "other"]


class TestHolds:
    def test_are_counted_and_what_they_hold_is_not_overdue(self, make_task, now):
        """Of what is due, only what nothing holds can be late."""
        late = now - timedelta(hours=1)
        free = make_task(task_key="trial.expire", state=State.AVAILABLE, scheduled_at=now - timedelta(minutes=30))
        for state in (State.SCHEDULED, State.AVAILABLE, State.RETRYABLE):
            make_task(state=state, scheduled_at=late)
        make_task(state=State.AVAILABLE, scheduled_at=late, task_key="trial.expire", entity_label="a.b", entity_id="7")
        make_task(scheduled_at=now + timedelta(hours=1))
        Hold.objects.create(scope="task", target="trial.remind", reason="x", created_at=now)
        names = {"entity_label": "a.b", "entity_id": "7", "names": [["a.b", "7"]]}
        Hold.objects.create(scope="entity", reason="x", created_at=now, **names)

        found = diagnose(now=now, using="default")

        assert (found.holds, found.held, found.overdue) == (2, 4, 1)
        assert found.oldest_overdue_at == free.scheduled_at

    def test_raise_no_alarm(self, make_task, now):
        sign_of_poller(using="default")
        make_task(state=State.AVAILABLE, scheduled_at=now - timedelta(days=3))
        Hold.objects.create(scope="everything", reason="x", created_at=now)

        assert diagnose(now=now, using="default").well


class Nightly(Timeline):
    starts_on = daily("02:00", zone="UTC")

    @task(after())
    def settle(self): ...


class TestAClockThatWasAhead:
    def said(self, now):
        return diagnose(now=now, using="default").troubles

    def test_is_told_with_the_time_when_runs_begin_again_and_the_remedy(self, now):
        with only_timelines(Nightly):
            recur(NextBeginnings(), now=now + timedelta(days=366), using="default")
            recur(NextBeginnings(), now=now, using="default")

            [said] = self.said(now)

            assert re.search(r"next runs of nightly .* before 2027-03-\d\d 02:00.*other names", said)
            assert not self.said(now + timedelta(days=366))

    def test_is_no_trouble_while_it_runs_as_it_should(self, now):
        with only_timelines(Nightly):
            assert not self.said(now)
            for days in range(3):
                recur(NextBeginnings(), now=now + timedelta(days=days), using="default")

            assert not self.said(now + timedelta(days=2))


class TestATimeThatHasPassed:
    def test_without_a_run_is_told_with_when_and_of_what(self, now):
        with only_timelines(Nightly):
            recur(NextBeginnings(), now=now, using="default")

            [said] = diagnose(now=now + timedelta(days=9), using="default").troubles

            assert re.search(r"A time of nightly has passed .* the first on 2026-03-03 02:00 UTC", said)

    def test_is_not_told_where_nobody_polls_which_is_the_cause(self, now):
        with only_timelines(Nightly):
            recur(NextBeginnings(), now=now, using="default")
            Identity.objects.update(polled_at=None)

            assert diagnose(now=now + timedelta(days=9), using="default").troubles == []


class TestWhatWaits:
    def test_counts_what_failed_for_good_however_long_ago_until_it_is_redriven(self, make_task, now):
        dead = make_task(state=State.DISCARDED, reason_code="error", finished_at=now - timedelta(days=40))
        make_task(state=State.DISCARDED, reason_code="error", finished_at=now - timedelta(days=3))

        found = look(now)
        assert (found.waiting.dead_letters, found.well, found.needs_nobody) == (2, True, False)

        make_task(previous=dead, revision=2, occurrence=dead.occurrence)
        assert look(now).waiting.dead_letters == 1

    def test_counts_tasks_that_rest_until_somebody_decides(self, make_task, now):
        for code in ("in_doubt", "in_doubt", "definition", "waiting"):
            make_task(state=State.RETRYABLE, reason_code=code, scheduled_at=now + timedelta(days=1))

        found = look(now)

        assert (found.waiting.in_doubt, found.waiting.changed, found.waiting.total) == (2, 1, 3)
        assert not found.needs_nobody

    def test_counts_holds_that_somebody_has_to_release(self, now):
        given = {"scope": "everything", "reason": "x", "created_at": now}
        Hold.objects.create(**given, until=now + timedelta(days=1))
        assert look(now).needs_nobody

        Hold.objects.create(**given)

        assert (look(now).waiting.holds, look(now).needs_nobody) == (1, False)

    def test_counts_nothing_where_nothing_waits(self, make_task, now):
        for state in (State.SCHEDULED, State.COMPLETED, State.CANCELLED):
            make_task(state=state, scheduled_at=now + timedelta(days=1))

        found = look(now)

        assert (found.waiting.total, found.needs_nobody) == (0, True)
