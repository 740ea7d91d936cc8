"""Move: give tasks another time, in place while they wait, else by the next revision."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from tests.testapp.models import Order
from timeline import Timeline, at, task
from timeline.dispatch.poll import stage
from timeline.exceptions import DateOutOfRange, InvalidInput, NaiveDatetime, TransitionNotAllowed
from timeline.lifecycle import FINAL, OPEN, WAITING, Reason, State
from timeline.models import LogEntry, ScheduledTask
from timeline.operations.move import move
from timeline.operations.reconcile import reconcile
from timeline.testing import only_timelines
from timeline.timing.offsets import Offset

REASON = Reason.operator("asked for", "ada")


class Parcelling(Timeline):
    """Too late after three hours."""

    entity = "testapp.Order"

    @task(expires=timedelta(hours=3))
    def pack(self, order): ...


def move_to(rows, at, now):
    return move(task_ids=[row.pk for row in rows], at=at, reason=REASON, now=now, using="default")


class TestMove:
    @pytest.mark.parametrize("state", sorted(WAITING))
    def test_moves_a_waiting_task_in_place(self, make_task, now, later, state):
        row = make_task(state=state)

        [moved] = move_to([row], later, now)

        assert moved == row
        row.refresh_from_db()
        assert (row.state, row.scheduled_at, row.nominal_at) == (state, later, now)
        assert (row.reason_code, row.reason, row.actor) == ("moved", "asked for", "ada")
        assert row.log.get().detail["scheduled_at"] == later.isoformat()

    @pytest.mark.parametrize("state", sorted(OPEN - WAITING))
    def test_has_the_next_revision_carry_on_for_one_that_is_due(self, make_task, now, later, state):
        row = make_task(state=state, payload={"n": 1}, priority=7, queue="slow", attempt=2, failures=2)

        [moved] = move_to([row], later, now)

        row.refresh_from_db()
        assert (row.state, row.reason_code, row.reason, row.actor) == (State.CANCELLED, "moved", "asked for", "ada")
        moved.refresh_from_db()
        assert (moved.previous, moved.revision, moved.state) == (row, 2, State.SCHEDULED)
        assert (moved.scheduled_at, moved.nominal_at, moved.occurrence) == (later, row.nominal_at, row.occurrence)
        assert (moved.payload, moved.priority, moved.queue) == ({"n": 1}, 7, "slow")
        assert (moved.attempt, moved.failures) == (0, 0)

    @pytest.mark.parametrize("state", sorted(OPEN))
    def test_into_the_past_makes_it_due(self, make_task, now, state):
        row = make_task(state=state, scheduled_at=now + timedelta(days=9))

        [moved] = move_to([row], now - timedelta(hours=1), now)

        assert moved in ScheduledTask.objects.due(now)

    def test_takes_many_in_the_order_given(self, make_task, now, later):
        rows = [make_task(state=state) for state in (State.AVAILABLE, State.SCHEDULED, State.PENDING)]

        moved = move_to(rows, later, now)

        assert [row.previous_id or row.pk for row in moved] == [row.pk for row in rows]
        assert {row.scheduled_at for row in moved} == {later}

    @pytest.mark.parametrize("state", [State.SCHEDULED, State.AVAILABLE])
    def test_leaves_as_long_until_it_is_too_late_as_is_declared(self, make_task, now, later, state):
        row = make_task(task_key="parcelling.pack", state=state, expires_at=now + timedelta(hours=3))

        with only_timelines(Parcelling):
            [moved] = move_to([row], later, now)

        assert moved.expires_at == later + timedelta(hours=3)

    def test_of_one_whose_retry_would_come_too_late_gives_it_time_again(self, make_task, now, later):
        row = make_task(
            task_key="parcelling.pack",
            state=State.RETRYABLE,
            scheduled_at=now + timedelta(hours=5),
            expires_at=now + timedelta(hours=3),
        )

        with only_timelines(Parcelling):
            [moved] = move_to([row], later, now)

        assert moved.expires_at == later + timedelta(hours=3)

    @pytest.mark.parametrize("state", [State.SCHEDULED, State.AVAILABLE])
    def test_of_one_that_never_expires_lets_it_never_expire(self, make_task, now, later, state):
        [moved] = move_to([make_task(task_key="trial.expire", state=state)], later, now)

        assert moved.expires_at is None

    @pytest.mark.parametrize("state", sorted(FINAL))
    def test_refuses_what_has_ended_and_changes_nothing(self, make_task, now, later, state):
        waiting, due, ended = make_task(), make_task(state=State.AVAILABLE), make_task(state=state)

        with pytest.raises(TransitionNotAllowed) as refused:
            move_to([waiting, due, ended], later, now)

        assert refused.value.task == ended.pk
        self.nothing_changed(waiting, due, now)

    def test_refuses_an_id_that_is_not_there_and_changes_nothing(self, make_task, now, later):
        waiting, due, gone = make_task(), make_task(state=State.AVAILABLE), ScheduledTask(pk=uuid4())

        with pytest.raises(ScheduledTask.DoesNotExist, match=str(gone.pk)):
            move_to([waiting, due, gone], later, now)

        self.nothing_changed(waiting, due, now)

    @pytest.mark.parametrize(
        ("moment", "error"),
        [
            (datetime(2026, 5, 1), NaiveDatetime),  # noqa: DTZ001 (that is the case)
            ("tomorrow", NaiveDatetime),
            (datetime.fromisoformat("9000-01-01T00:00:00+00:00"), DateOutOfRange),
        ],
    )
    def test_refuses_a_wrong_time_and_changes_nothing(self, make_task, now, moment, error):
        waiting, due = make_task(), make_task(state=State.AVAILABLE)

        with pytest.raises(error):
            move_to([waiting, due], moment, now)

        self.nothing_changed(waiting, due, now)

    def nothing_changed(self, waiting, due, now):
        for row, state in ((waiting, State.SCHEDULED), (due, State.AVAILABLE)):
            row.refresh_from_db()
            assert (row.state, row.scheduled_at, row.seq) == (state, now, 0)
        assert not LogEntry.objects.exists()
        assert not ScheduledTask.objects.filter(revision=2).exists()


class Delivery(Timeline):
    entity = "testapp.Order"

    @task(at("ships_at"))
    def ship(self, order):
        return None


class TestAMovedTaskOfARun:
    @pytest.fixture(autouse=True, params=["waiting", "due"])
    def moved(self, request, order, start_at, now, later):
        """Moved two days on from where its anchor has it: once before it was due, once after."""
        Order.objects.update(ships_at=later)
        with only_timelines(Delivery):
            start_at("delivery", order, now)
            if request.param == "due":
                stage(now=later, using="default")
            [moved] = move_to(ScheduledTask.objects.all(), later + timedelta(days=2), now)
            yield moved

    def test_stays_where_it_was_moved(self, moved, order, now, later, run_at):
        reconcile(entity=order, now=now, using="default")

        moved.refresh_from_db()
        assert moved.scheduled_at == later + timedelta(days=2)
        assert run_at(moved, later) is None
        assert run_at(moved, later + timedelta(days=2)).state == State.COMPLETED

    def test_follows_its_anchor_when_that_changes_later(self, moved, order, now, later):
        Order.objects.update(ships_at=later + timedelta(days=9))

        reconcile(entity=order, now=now, using="default")

        moved.refresh_from_db()
        assert moved.scheduled_at == later + timedelta(days=9)


class TestMoveBySoMuch:
    def test_moves_each_from_its_own_time(self, make_task, now):
        first, second = make_task(scheduled_at=now), make_task(scheduled_at=now + timedelta(hours=7), occurrence="2")
        by = Offset(days=2, exact=timedelta(hours=-3))

        moved = move(task_ids=[first.pk, second.pk], by=by, reason=REASON, now=now, using="default")

        assert [row.scheduled_at for row in moved] == [
            row.scheduled_at + timedelta(days=2, hours=-3) for row in (first, second)
        ]

    def test_counts_days_on_the_clocks_of_the_site(self, make_task, now, settings):
        settings.TIME_ZONE = "Europe/Berlin"
        row = make_task(scheduled_at=datetime(2026, 3, 28, 8, tzinfo=UTC))  # Nine in Berlin.

        [moved] = move(task_ids=[row.pk], by=Offset(days=1), reason=REASON, now=now, using="default")

        assert moved.scheduled_at == datetime(2026, 3, 29, 7, tzinfo=UTC)

    def test_changes_nothing_if_one_would_come_to_lie_outside_of_time(self, make_task, now):
        rows = [make_task(scheduled_at=now), make_task(scheduled_at=datetime(8999, 1, 1, tzinfo=UTC), occurrence="2")]

        with pytest.raises(DateOutOfRange) as caught:
            move(task_ids=[row.pk for row in rows], by=Offset(days=999), reason=REASON, now=now, using="default")

        assert caught.value.field == "by"
        assert not LogEntry.objects.exists()

    @pytest.mark.parametrize(
        "given", [{}, {"by": Offset()}, {"at": datetime(2027, 1, 1, tzinfo=UTC), "by": Offset(days=1)}]
    )
    def test_refuses_what_says_neither_or_both(self, make_task, now, given):
        with pytest.raises(InvalidInput, match="Give at=, or by="):
            move(task_ids=[make_task().pk], reason=REASON, now=now, using="default", **given)
