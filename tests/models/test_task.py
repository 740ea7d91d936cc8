"""The questions asked of tasks: what each finds, and what it does not."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from tests.testapp.models import Country, Order, Parcel
from timeline.conf import get_settings
from timeline.exceptions import TimelineDeprecationWarning
from timeline.lifecycle import FINAL, LEASED, OPEN, WAITING, State
from timeline.models import ScheduledTask, ref_of

SECOND = timedelta(seconds=1)


@pytest.fixture
def one_of_each(make_task):
    """A row in each state, due at a moment."""
    return lambda at: {state: make_task(state=state, scheduled_at=at, nominal_at=at) for state in State}


def states(tasks):
    return {State(task.state) for task in tasks}


class TestOpenAndFinal:
    def test_part_the_states(self, one_of_each, now):
        one_of_each(now)

        assert states(ScheduledTask.objects.open()) == OPEN
        assert states(ScheduledTask.objects.final()) == FINAL


class TestWouldHaveRun:
    def test_is_what_was_completed_in_shadow(self, one_of_each, make_task, now):
        one_of_each(now)
        wanted = make_task(state=State.COMPLETED, reason_code="shadow")

        assert list(ScheduledTask.objects.would_have_run()) == [wanted]

    def test_is_not_what_came_to_another_end_after_it_was_run_in_shadow(self, make_task):
        """The code alone says nothing of a row that is open or was called off."""
        for state in sorted(set(State) - {State.COMPLETED}):
            make_task(state=state, reason_code="shadow")

        assert not ScheduledTask.objects.would_have_run()


class TestUpcoming:
    @pytest.mark.parametrize("seconds", [-1, 0, 1])
    def test_is_all_that_has_not_ended_due_or_not(self, one_of_each, now, seconds):
        """The same set as in the admin and in the API."""
        one_of_each(now + seconds * SECOND)

        assert states(ScheduledTask.objects.upcoming()) == OPEN

    def test_with_a_time_is_what_it_was_and_deprecated(self, one_of_each, now):
        one_of_each(now + SECOND)

        with pytest.warns(TimelineDeprecationWarning, match=r"Use ahead\(now\)") as caught:
            assert states(ScheduledTask.objects.all().upcoming(now)) == WAITING

        assert caught[0].filename == __file__


class TestAhead:
    def test_is_what_waits_for_a_time_ahead(self, one_of_each, now):
        one_of_each(now + SECOND)

        assert states(ScheduledTask.objects.ahead(now)) == WAITING

    def test_is_not_what_is_due_now(self, one_of_each, now):
        one_of_each(now)

        assert not ScheduledTask.objects.ahead(now)


class TestDue:
    def test_is_what_no_worker_has_started_though_its_time_has_come(self, one_of_each, now):
        one_of_each(now)

        assert states(ScheduledTask.objects.due(now)) == OPEN - {State.ACTIVE}

    def test_is_not_what_is_ahead(self, one_of_each, now):
        one_of_each(now + timedelta(microseconds=1))

        assert not ScheduledTask.objects.due(now)

    def test_and_ahead_are_all_that_is_open_but_not_active(self, one_of_each, now):
        one_of_each(now)

        for moment in (now - SECOND, now):
            due, ahead = ScheduledTask.objects.due(moment), ScheduledTask.objects.ahead(moment)
            assert not set(due) & set(ahead)
            assert states(due) | states(ahead) <= OPEN - {State.ACTIVE}


class TestOverdue:
    @pytest.mark.parametrize("interval", [SECOND, timedelta(minutes=5)])
    def test_is_what_is_due_for_two_polls(self, one_of_each, now, settings, interval):
        settings.TIMELINE = {"POLL_INTERVAL": interval}
        one_of_each(now)

        assert get_settings().overdue_after == 2 * interval
        assert states(ScheduledTask.objects.overdue(now + 2 * interval)) == OPEN - {State.ACTIVE}
        assert not ScheduledTask.objects.overdue(now + 2 * interval - timedelta(milliseconds=1))


class TestForEntity:
    @pytest.mark.parametrize("model", [Order, Parcel, Country])
    def test_finds_its_rows_only(self, make_task, db, model):
        mine, another = (
            model.objects.create(code=code) if model is Country else model.objects.create() for code in ("fr", "de")
        )
        rows = {
            entity: make_task(entity_label=ref_of(entity).label, entity_id=ref_of(entity).id)
            for entity in (mine, another)
        }
        make_task(entity_label="accounts.user", entity_id=str(mine.pk))
        system = make_task()

        assert list(ScheduledTask.objects.for_entity(mine)) == [rows[mine]]
        assert list(ScheduledTask.objects.for_entity(ref_of(another))) == [rows[another]]
        assert list(ScheduledTask.objects.for_entity(None)) == [system]

    def test_chains_with_the_other_questions(self, make_task, order, now):
        named = {"entity_label": "testapp.order", "entity_id": str(order.pk)}
        wanted = make_task(scheduled_at=now, **named)
        make_task(scheduled_at=now + SECOND, **named)
        make_task(scheduled_at=now)

        assert list(ScheduledTask.objects.for_entity(order).due(now)) == [wanted]


class TestOfTimeline:
    def test_tells_names_apart_that_begin_alike(self, make_task):
        wanted = make_task(task_key="trial.remind")
        make_task(task_key="trial_two.remind")
        make_task(task_key="trialx.remind")

        assert list(ScheduledTask.objects.of_timeline("trial")) == [wanted]


class TestWithHandler:
    def test_finds_the_keys_given(self, make_task):
        wanted = make_task(task_key="a.b")
        make_task(task_key="a.c")

        assert list(ScheduledTask.objects.with_handler(["a.b", "x.y"])) == [wanted]
        assert not ScheduledTask.objects.with_handler([])


class TestToStage:
    def test_is_what_waits_and_is_due_the_longest_due_first(self, one_of_each, make_task, now):
        one_of_each(now)
        one_of_each(now + SECOND)
        first = make_task(scheduled_at=now - SECOND)

        found = list(ScheduledTask.objects.to_stage(now))

        assert found[0] == first
        assert len(found) == 3
        assert states(found) == WAITING


class TestReady:
    def test_is_what_is_available_by_priority_then_time_then_age(self, make_task, one_of_each, now):
        last = one_of_each(now + SECOND)[State.AVAILABLE]
        third = make_task(state=State.AVAILABLE, scheduled_at=now, pk=UUID(int=2))
        second = make_task(state=State.AVAILABLE, scheduled_at=now, pk=UUID(int=1))
        first = make_task(state=State.AVAILABLE, scheduled_at=now + timedelta(days=1), priority=-1)

        assert list(ScheduledTask.objects.ready()) == [first, second, third, last]


class TestGivenUp:
    def test_is_what_is_held_by_a_lease_that_ran_out(self, make_task, now):
        for state in State:
            make_task(state=state)
        for state in LEASED:
            make_task(state=state, lease_expires_at=now - timedelta(days=365))

        found = list(ScheduledTask.objects.given_up())

        assert states(found) == LEASED
        assert len(found) == 2

    def test_goes_by_the_databases_real_clock(self, make_task, clock):
        """Story time may stand anywhere."""
        make_task(state=State.ACTIVE, lease_expires_at=datetime.now(UTC) + timedelta(seconds=50))
        gone = make_task(state=State.ACTIVE, lease_expires_at=datetime.now(UTC) - timedelta(seconds=1))
        clock.set(datetime(2999, 1, 1, tzinfo=UTC))

        assert list(ScheduledTask.objects.given_up()) == [gone]


class TestInOrder:
    def test_is_by_time_then_age(self, make_task, now):
        third = make_task(scheduled_at=now + SECOND)
        second = make_task(scheduled_at=now, pk=UUID(int=2))
        first = make_task(scheduled_at=now, pk=UUID(int=1))

        assert list(ScheduledTask.objects.in_order()) == [first, second, third]


class TestAbout:
    def test_goes_by_the_kind_of_entity(self, make_task):
        row = make_task(entity_label="accounts.user", entity_id="1")
        none = make_task()

        assert ScheduledTask.objects.about("accounts.user").get() == row
        assert ScheduledTask.objects.about("").get() == none


class TestDueBetween:
    def test_takes_the_first_moment_and_leaves_the_last(self, make_task, now):
        rows = [make_task(scheduled_at=now + timedelta(hours=hours)) for hours in range(3)]

        found = ScheduledTask.objects.due_between(now, now + timedelta(hours=2))

        assert set(found) == set(rows[:2])
