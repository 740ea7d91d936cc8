"""Release: batches, and how much time was lost. What it does is told in stories/test_holds."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection
from django.test.utils import CaptureQueriesContext

from timeline.exceptions import AlreadyReleased
from timeline.features.holds import release as holds_release
from timeline.features.holds.release import lost, release, release_due
from timeline.features.holds.verbs import hold, park
from timeline.lifecycle import Reason, ReasonCode, State
from timeline.models import Admission, Hold, ScheduledTask, Scope
from timeline.operations.move import move

HOUR = timedelta(hours=1)


class TestLost:
    @pytest.mark.parametrize(
        ("counted", "hours"),
        [
            ([], 10),
            ([(-5, 0)], 10),
            ([(-5, 3)], 7),
            ([(2, 3)], 9),
            ([(2, 5), (3, 4)], 7),
            ([(3, 6), (2, 5)], 6),
            ([(8, 12), (1, 2)], 7),
            ([(-1, 11)], 0),
            ([(12, 13)], 10),
        ],
    )
    def test_leaves_out_what_is_counted(self, now, counted, hours):
        spans = [(now + first * HOUR, now + last * HOUR) for first, last in counted]

        assert lost(now, now + 10 * HOUR, spans) == hours * HOUR


@pytest.mark.django_db
class TestRelease:
    @pytest.fixture(autouse=True)
    def _patient(self, monkeypatch):
        """However slow this machine is, a poll comes to the end of what there is to release."""
        monkeypatch.setattr(holds_release, "A_TURN", 3600)

    @pytest.fixture
    def held(self, now):
        def put(then, **given):
            given = {"scope": Scope.TASK, "target": "trial.remind", **given}
            return hold(reason="x", then=then, now=now, using="default", **given)

        return put

    def test_refuses_one_that_is_not_there(self, now):
        with pytest.raises(Hold.DoesNotExist):
            release(hold_id=uuid4(), now=now, using="default")

    def test_refuses_one_that_is_being_released(self, held, now):
        row = held("shift")
        release(hold_id=row.pk, now=now + HOUR, using="default")

        with pytest.raises(AlreadyReleased):
            release(hold_id=row.pk, now=now + HOUR, using="default")

    def test_counts_until_its_time_where_that_came_first(self, held, now):
        row = held("shift", until=now + HOUR)

        assert release(hold_id=row.pk, now=now + 5 * HOUR, using="default").lifted_at == now + HOUR

    def test_takes_no_more_statements_for_a_hundred_than_for_ten(self, held, make_task, now):
        counts = []
        for number in (10, 100):
            for _ in range(number):
                make_task(scheduled_at=now + HOUR, created_at=now - HOUR)
            row = held("shift")
            release(hold_id=row.pk, now=now + HOUR, using="default")
            with CaptureQueriesContext(
                connection,
            ) as caught:
                assert release_due(now=now + HOUR, using="default") >= number
            counts.append(len(caught))
            Hold.objects.all().delete()

        assert counts[0] == counts[1]

    def test_goes_on_in_the_next_poll_when_its_turn_is_over(self, held, make_task, now, monkeypatch):
        monkeypatch.setattr(holds_release, "BATCH", 3)
        monkeypatch.setattr(holds_release, "A_TURN", 0)
        rows = [make_task(scheduled_at=now + 9 * HOUR, created_at=now - HOUR) for _ in range(7)]
        row = held("shift")
        release(hold_id=row.pk, now=now + HOUR, using="default")

        assert release_due(now=now + HOUR, using="default") == 0
        monkeypatch.setattr(holds_release, "A_TURN", 5)
        assert release_due(now=now + HOUR, using="default") == 7

        row.refresh_from_db()
        assert (row.settled, row.is_open) == (7, False)
        assert set(ScheduledTask.objects.values_list("scheduled_at", flat=True)) == {now + 10 * HOUR}
        assert row.place == max(task.pk for task in rows)

    def test_stops_no_poll_where_it_fails(self, held, make_task, now, monkeypatch, caplog):
        """It stays on hold, the log of the process says why, and other holds are released."""
        make_task(scheduled_at=now + HOUR, created_at=now - HOUR)
        first, second = held("shift"), held("shift")
        for row in (first, second):
            release(hold_id=row.pk, now=now + HOUR, using="default")
        settle = holds_release._settle_some

        def fail_at_first(hold_id, *args, **kwargs):
            if hold_id == first.pk:
                raise IntegrityError("refused")
            return settle(hold_id, *args, **kwargs)

        monkeypatch.setattr(holds_release, "_settle_some", fail_at_first)

        assert release_due(now=now + HOUR, using="default") == 1
        assert list(Hold.objects.open()) == [first]
        assert f"The hold {first.pk} cannot be released now" in caplog.text

    def test_counts_the_time_of_two_holds_once_whichever_comes_to_its_end_first(
        self, held, make_task, now, monkeypatch
    ):
        """The first cannot be ended just now, as somebody has locked what it is about; the second goes before it."""
        ahead = make_task(scheduled_at=now + 9 * HOUR, created_at=now - HOUR)
        due = make_task(scheduled_at=now + HOUR, created_at=now - HOUR, state=State.AVAILABLE, occurrence="due")
        first, second = held("shift"), held("shift")
        for row in (first, second):
            release(hold_id=row.pk, now=now + 2 * HOUR, using="default")
        settle = holds_release._settle_some
        monkeypatch.setattr(
            holds_release,
            "_settle_some",
            lambda hold_id, *args, **kwargs: (0, 0) if hold_id == first.pk else settle(hold_id, *args, **kwargs),
        )
        release_due(now=now + 2 * HOUR, using="default")
        monkeypatch.undo()
        release_due(now=now + 2 * HOUR, using="default")

        ahead.refresh_from_db()
        assert ahead.scheduled_at == now + 11 * HOUR
        assert ScheduledTask.objects.get(previous=due).scheduled_at == now + 3 * HOUR
        assert not Hold.objects.open().exists()

    @pytest.mark.parametrize(
        ("spans", "polls", "hours"),
        [
            pytest.param([(1, 6), (2, 4)], [4, 6], 5, id="one within another"),
            pytest.param([(1, 4), (1, 6)], [7], 5, id="ended while nobody polled"),
            pytest.param([(1, 4), (2, 4)], [4.5], 3, id="ended at once"),
            pytest.param([(1, 2), (3, 6)], [7], 4, id="one after another while nobody polled"),
            pytest.param([(1, 3), (3, 5), (2, 4)], [3.5, 6], 4, id="three"),
        ],
    )
    def test_moves_what_is_due_as_far_as_what_is_ahead(self, held, make_task, now, spans, polls, hours):
        """A task that is due gets a revision at the end of a hold: of the time of others it must lose nothing by that."""
        due = make_task(scheduled_at=now, created_at=now, state=State.AVAILABLE)
        ahead = make_task(scheduled_at=now + 90 * HOUR, created_at=now)
        for first, last in spans:
            row = held("shift", until=now + last * HOUR)
            Hold.objects.filter(pk=row.pk).update(created_at=now + first * HOUR)

        for hour in polls:
            release_due(now=now + hour * HOUR, using="default")

        ahead.refresh_from_db()
        assert ahead.scheduled_at == now + (90 + hours) * HOUR
        assert ScheduledTask.objects.open().exclude(pk=ahead.pk).get().scheduled_at == now + hours * HOUR
        due.refresh_from_db()
        assert due.reason_code == "moved"

    def test_counts_for_a_task_that_a_person_moved_from_then_on(self, held, make_task, now):
        due = make_task(scheduled_at=now, created_at=now, state=State.AVAILABLE)
        row = held("shift", until=now + 5 * HOUR)
        why = Reason(ReasonCode.MOVED, "tomorrow", "ada")
        move(task_ids=[due.pk], at=now + 20 * HOUR, reason=why, now=now + 2 * HOUR, using="default")

        release_due(now=now + 6 * HOUR, using="default")

        assert ScheduledTask.objects.open().get().scheduled_at == now + 23 * HOUR
        row.refresh_from_db()
        assert row.settled == 1

    def test_counts_it_once_where_both_are_half_way(self, held, make_task, now, monkeypatch):
        monkeypatch.setattr(holds_release, "BATCH", 2)
        monkeypatch.setattr(holds_release, "A_TURN", 0)
        for _ in range(5):
            make_task(scheduled_at=now + 9 * HOUR, created_at=now - HOUR)
        rows = [held("shift"), held("shift")]
        for row in rows:
            release(hold_id=row.pk, now=now + HOUR, using="default")
        for turn in range(6):
            holds_release._settle_some(rows[turn % 2].pk, 2, now=now + HOUR, using="default")

        assert set(ScheduledTask.objects.values_list("scheduled_at", flat=True)) == {now + 10 * HOUR}
        assert not Hold.objects.open().exists()

    def test_leaves_what_ran_meanwhile_and_what_came_later(self, held, make_task, now):
        row = held("shift")
        for state in (State.ACTIVE, State.COMPLETED):
            make_task(state=state, scheduled_at=now, created_at=now)
        make_task(scheduled_at=now + 9 * HOUR, created_at=now + HOUR)
        release(hold_id=row.pk, now=now + HOUR, using="default")

        assert release_due(now=now + HOUR, using="default") == 0
        assert not Hold.objects.open().exists()

    @pytest.mark.parametrize("scope", [Scope.EVERYTHING, Scope.QUEUE, Scope.TAG, Scope.TIMELINE, Scope.TASK])
    def test_sees_to_the_tasks_of_its_scope(self, held, make_task, now, scope):
        targets = {Scope.QUEUE: "default", Scope.TAG: "mail", Scope.TIMELINE: "trial", Scope.TASK: "trial.remind"}
        make_task(scheduled_at=now, created_at=now - HOUR)
        row = held("expire", scope=scope, target=targets.get(scope, ""))
        release(hold_id=row.pk, now=now + HOUR, using="default")

        assert release_due(now=now + HOUR, using="default") == 1
        assert ScheduledTask.objects.get().reason_code == "expired"


@pytest.mark.django_db
class TestReleaseOfABrake:
    """Of very many, what was due is let go in portions, and the kind stays on hold until the last."""

    @pytest.fixture(autouse=True)
    def _few(self, monkeypatch):
        monkeypatch.setattr(holds_release, "BATCH", 1)
        monkeypatch.setattr(holds_release, "LET_GO", 2)

    @pytest.fixture
    def parked(self, make_task, now):
        for number in range(5):
            make_task(task_key="trial.expire", occurrence=str(number), scheduled_at=now - HOUR)
        return park("trial.expire", most=3, within=HOUR, now=now, using="default")

    def let_go(self, held, now):
        return release(hold_id=held.pk, actor="ada", reason="they have left", now=now, using="default")

    def test_is_gone_on_with_by_polls(self, parked, now, monkeypatch):
        begun = self.let_go(parked, now)
        counts = [(Admission.objects.count(), begun.is_open)]
        for _ in range(3):
            monkeypatch.setattr(
                holds_release, "monotonic", iter([0, 0, 1]).__next__
            )  # A poll has time for one portion.
            release_due(now=now + HOUR, using="default")
            begun.refresh_from_db()
            counts.append((Admission.objects.count(), begun.is_open))

        assert counts == [(2, True), (4, True), (5, False), (5, False)]
        assert (begun.settled, begun.lifted_at, begun.released_at) == (5, now, now + HOUR)
        assert set(Admission.objects.values_list("at", flat=True)) == {now}

    def test_is_gone_on_with_where_a_poll_was_killed(self, parked, now, monkeypatch):
        """What it has let go stays so, the kind stays on hold, and the next poll lets go of the rest."""
        self.let_go(parked, now)
        let_go, calls = holds_release.let_go, []

        def dying(*args, **given):
            calls.append(args)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return let_go(*args, **given)

        monkeypatch.setattr(holds_release, "let_go", dying)
        with pytest.raises(KeyboardInterrupt):
            release_due(now=now, using="default")
        parked.refresh_from_db()
        before = (Admission.objects.count(), parked.is_open)
        release_due(now=now, using="default")

        parked.refresh_from_db()
        assert before == (4, True)
        assert (Admission.objects.count(), parked.is_open, parked.settled) == (5, False, 5)

    def test_lets_go_of_no_more_than_was_due_at_that_moment(self, parked, make_task, now):
        self.let_go(parked, now)
        make_task(task_key="trial.expire", occurrence="imported", scheduled_at=now - HOUR)

        release_due(now=now + HOUR, using="default")

        assert Admission.objects.count() == 5
        assert not Hold.objects.get().is_open

    def test_cannot_be_released_twice(self, parked, now):
        self.let_go(parked, now)

        with pytest.raises(AlreadyReleased):
            self.let_go(parked, now)

    def test_is_one_statement_however_many_there_are(self, parked, now):
        """No statement writes more than a portion."""
        with CaptureQueriesContext(connection) as asked:
            self.let_go(parked, now)

        assert sum("timeline_admission" in query["sql"] for query in asked) == 1
