"""Explain: one story for each way a task can stand or end."""

import re
from datetime import timedelta
from uuid import UUID

import pytest

from tests.testapp.models import Order
from timeline import Cancel, Discard, Retry, RetryAfter, Timeline, after, at, task
from timeline.dispatch.claim import claim
from timeline.dispatch.poll import stage
from timeline.dispatch.rescue import rescue
from timeline.engine.groups import run
from timeline.lifecycle import Reason, ReasonCode, State
from timeline.models import LogEntry, ScheduledTask
from timeline.reading.explanation import explain, why
from timeline.shortcuts import cancel, emit, leave, move, reconcile, redrive, run_now, schedule, start
from timeline.testing import only_timelines
from timeline.timing import EARLIEST

BY_ITS_SCHEDULE = "; by its schedule it would be due on 2026-03-06 09:00 UTC: at ships_at"


class Delivery(Timeline):
    entity = "testapp.Order"
    starts_on = "order.placed"
    exits = {"order.closed": "closed"}

    @task(at("ships_at"), expires=timedelta(days=2), retry=Retry(max_attempts=2), unless=lambda order: order.paid)
    def ship(self, order):
        match order.note:
            case "cancel":
                raise Cancel("not wanted any more")
            case "discard":
                raise Discard("no such address")
            case "later":
                raise RetryAfter(timedelta(hours=1), "the carrier is busy")
            case "fail":
                raise ValueError("boom")
            case "closed":
                raise ValueError("The carrier is closed.")
        return {"parcels": 2}

    @task(after(ship, days=2))
    def ask(self, order):
        return None


@pytest.fixture(autouse=True)
def _story(clock, now):
    clock.set(now)
    with only_timelines(Delivery):
        yield


@pytest.fixture
def order(now):
    return Order.objects.create(ships_at=now + timedelta(days=5))


@pytest.fixture
def ship(order):
    emit("order.placed", order)
    return ScheduledTask.objects.get()


@pytest.fixture
def told(clock):
    """The lines of a task's story as it stands now."""

    def tell(task):
        return explain(ScheduledTask.objects.get(pk=task.pk), now=clock.now, using="default").split("\n")

    return tell


@pytest.mark.timeline(raises=False)
class TestExplain:
    def test_says_where_it_comes_from_and_when_it_is_due(self, ship, told, order):
        assert told(ship) == [
            f"delivery.ship for testapp.order {order.pk} belongs to the run of delivery that started on"
            " 2026-03-01 09:00 UTC with the event order.placed.",
            "It is due on 2026-03-06 09:00 UTC: at ships_at (ships_at: 2026-03-06 09:00 UTC).",
            "It waits for its time, 2026-03-06 09:00 UTC.",
            "If it completes, delivery.ask follows.",
        ]

    def test_says_of_an_ad_hoc_task_that_it_is_one(self, order, now, told):
        lines = told(schedule("delivery.ship", order, at=now + timedelta(days=1)).task)

        assert lines[0].endswith("was scheduled ad hoc on 2026-03-01 09:00 UTC.")
        assert lines[-1] == "It waits for its time, 2026-03-02 09:00 UTC."

    def test_says_that_it_was_completed_and_what_came_of_it(self, ship, told, clock):
        clock.run_next()

        assert told(ship)[1:] == [
            "It was due on 2026-03-06 09:00 UTC: at ships_at (ships_at: 2026-03-06 09:00 UTC).",
            "Attempt 1 started on 2026-03-06 09:00 UTC by story clock.",
            'It was completed on 2026-03-06 09:00 UTC. Its result: {"parcels": 2}.',
        ]

    def test_shows_seconds_where_two_of_its_times_are_of_one_minute(self, ship, told, clock, now):
        clock.set(now + timedelta(days=5, seconds=10))
        clock.run_due()

        assert told(ship)[1:3] == [
            "It was due on 2026-03-06 09:00:00 UTC: at ships_at (ships_at: 2026-03-06 09:00:00 UTC).",
            "Attempt 1 started on 2026-03-06 09:00:10 UTC by story clock.",
        ]

    def test_says_when_it_was_due_first_of_what_is_tried_again(self, ship, told, clock):
        Order.objects.update(note="fail")

        clock.run_next()
        clock.advance(minutes=30)
        clock.run_due()

        assert ScheduledTask.objects.get(pk=ship.pk).scheduled_at > ship.scheduled_at
        assert told(ship)[1].startswith("It was due on 2026-03-06 09:00:00 UTC: at ships_at")

    @pytest.mark.parametrize(
        ("note", "ending"),
        [
            ("cancel", "It was cancelled on 2026-03-06 09:00 UTC: its handler decided so: not wanted any more."),
            ("discard", "It was discarded on 2026-03-06 09:00 UTC: timeline.exceptions.Discard: no such address."),
        ],
    )
    def test_says_what_the_handler_decided(self, ship, told, clock, note, ending):
        Order.objects.update(note=note)

        clock.run_next()

        assert told(ship)[-2:] == [ending, "So delivery.ask, which follows when it completes, has no row."]

    def test_says_that_its_guard_said_no(self, ship, told, clock):
        Order.objects.update(paid=True)

        clock.run_next()

        assert "its condition said no (unless <lambda>)" in told(ship)[-2]
        assert told(ship)[-3].endswith(", and did not enter its handler.")

    def test_says_how_its_attempts_failed(self, ship, told, clock):
        Order.objects.update(note="fail")

        clock.run_next()
        assert "Attempt 1 ended on 2026-03-06 09:00:00 UTC without success: ValueError: boom." in told(ship)
        clock.run_next()

        assert re.fullmatch(r"It was discarded on 2026-03-06 09:00:1\d UTC: ValueError: boom\.", told(ship)[-2])

    def test_ends_each_sentence_once(self, ship, told, clock):
        """Also where the message of an error is a sentence of its own."""
        Order.objects.update(note="closed")

        clock.run_next()

        assert "Attempt 1 ended on 2026-03-06 09:00:00 UTC without success: ValueError: The carrier is closed." in told(
            ship
        )

    def test_says_that_it_was_asked_to_wait(self, ship, told, clock):
        Order.objects.update(note="later")

        clock.run_next()

        lines = told(ship)
        assert lines[1].startswith("It was due on 2026-03-06 09:00 UTC: at ships_at")
        assert any("without success" in line and "the carrier is busy" in line for line in lines)
        assert "It waits for its time, 2026-03-06 10:00 UTC." in lines

    @pytest.mark.parametrize(
        ("end", "said"),
        [
            (
                lambda ship, order: emit("order.closed", order, actor="ada"),
                "the run ended by the exit “closed”, by ada",
            ),
            (lambda ship, order: leave(Delivery, order, reason="lost"), "the run ended by the exit “lost”"),
            (lambda ship, order: cancel(ship, reason="not now", actor="ada"), "not now, by ada"),
            (lambda ship, order: order.delete(), "the entity was deleted"),
            (
                lambda ship, order: Order.objects.update(ships_at=None) and reconcile(order),
                "ships at is not set any more",
            ),
        ],
    )
    def test_says_why_it_was_cancelled(self, ship, told, order, end, said):
        end(ship, order)

        assert f"It was cancelled on 2026-03-01 09:00 UTC: {said}." in told(ship)
        assert told(ship)[-1] == "So delivery.ask, which follows when it completes, has no row."

    def test_says_that_it_was_too_late(self, ship, told, now):
        late = now + timedelta(days=9)

        run(task_ids=[ship.pk], clock=lambda: late, using="default")

        assert "too late: it was to run before 2026-03-08 09:00 UTC" in told(ship)[-2]
        assert told(ship)[-3].startswith("Attempt 1 began on 2026-03-10 09:00 UTC")
        assert told(ship)[-3].endswith(", and did not enter its handler.")

    def test_says_that_it_was_moved(self, ship, told, now):
        move(ship, at=now + timedelta(days=7), reason="a holiday", actor="ada")

        lines = told(ship)
        assert lines[1].startswith(f"It is due on 2026-03-08 09:00 UTC{BY_ITS_SCHEDULE}")
        assert lines[2] == (
            "On 2026-03-01 09:00 UTC it was moved from 2026-03-06 09:00 UTC to 2026-03-08 09:00 UTC: a holiday, by ada."
        )

    def test_tells_each_of_several_moves_with_its_times_and_why(self, ship, told, now):
        move(ship, at=now + timedelta(days=7), reason="a holiday", actor="ada")
        move(ship, at=now + timedelta(days=8), reason="another one")

        assert told(ship)[1:4] == [
            f"It is due on 2026-03-09 09:00 UTC{BY_ITS_SCHEDULE} (ships_at: 2026-03-06 09:00 UTC).",
            "On 2026-03-01 09:00 UTC it was moved from 2026-03-06 09:00 UTC to 2026-03-08 09:00 UTC: a holiday, by ada.",
            "On 2026-03-01 09:00 UTC it was moved from 2026-03-08 09:00 UTC to 2026-03-09 09:00 UTC: another one.",
        ]

    def test_says_of_a_revision_that_it_was_moved_where_it_has_no_log_of_it(self, ship, told, now, clock):
        clock.set(now + timedelta(days=6))
        stage(now=clock.now, using="default")
        [moved] = move(ship, at=now + timedelta(days=7), reason="a holiday")

        assert told(moved)[1].startswith(f"It is due on 2026-03-08 09:00 UTC{BY_ITS_SCHEDULE}")
        assert told(ship)[-2] == "It was cancelled on 2026-03-07 09:00 UTC: it was moved: a holiday."

    def test_says_that_it_was_made_due_and_when_it_would_have_been(self, ship, told, clock):
        run_now(ship, reason="I want to see it", actor="ada")
        clock.run_due()

        lines = told(ship)
        assert lines[1].startswith(
            "It was due on 2026-03-01 09:00 UTC; by its schedule it would have been due on 2026-03-06 09:00 UTC: at ships_at"
        )
        assert lines[2] == "On 2026-03-01 09:00 UTC it was made due at once: I want to see it, by ada."

    def test_says_of_a_revision_that_is_run_again_when_it_would_have_been_due(self, ship, told, clock, now):
        clock.run_next()
        clock.advance(hours=1)
        [again] = redrive(ship, reason="once more")

        assert told(again)[1].startswith(
            "It is due on 2026-03-06 10:00 UTC; by its schedule it would be due on 2026-03-06 09:00 UTC: at ships_at"
        )

    def test_says_that_a_run_counts_from_a_time_to_come(self, order, told, now, clock):
        run = start(Delivery, order, started_at=now + timedelta(hours=2)).run
        task = ScheduledTask.objects.get(run=run)

        assert "belongs to the run of delivery that counts from 2026-03-01 11:00 UTC." in told(task)[0]
        cancel(task, reason="no")
        clock.advance(hours=3)
        assert "belongs to the run of delivery that counts from 2026-03-01 11:00 UTC." in told(task)[0]

    def test_names_the_next_revision(self, ship, told, now):
        cancel(ship, reason="no")
        [again] = redrive(ship, reason="yes")

        assert told(ship)[-1] == f"Its next revision, {again.pk}, is available, due on 2026-03-01 09:00 UTC."
        assert " (revision 2) " in told(again)[0]
        assert "On 2026-03-01 09:00 UTC it was decided to run it again: yes." in told(again)

    def test_says_that_its_worker_was_lost(self, ship, told, now, clock):
        ScheduledTask.objects.update(state=State.AVAILABLE, scheduled_at=now)
        ScheduledTask.objects.update(state=State.ACTIVE, attempt=1, worker="host:1", lease_expires_at=EARLIEST)

        rescue(now=now, using="default")

        lines = told(ship)
        assert any("worker host:1 was not heard of until its lease ran out" in line for line in lines)
        assert "Its time has come; the next poll takes it." in lines

    def test_says_that_its_message_was_sent_again(self, ship, told, now, clock):
        clock.set(now + timedelta(days=5))
        stage(now=clock.now, using="default")
        claim(now=clock.now, using="default")
        ScheduledTask.objects.update(lease_expires_at=EARLIEST)
        rescue(now=clock.now, using="default")

        assert "On 2026-03-06 09:00 UTC its message was sent again." in told(ship)
        assert "It is on its way to a worker." in told(ship)

    def test_says_that_its_worker_was_given_longer(self, make_task, told, now):
        row = make_task(state=State.ACTIVE, attempt=1, worker="mail:ab12", lease_expires_at=now)
        LogEntry.objects.create(
            task=row, seq=1, at=now, from_state=State.ACTIVE, to_state=State.ACTIVE, attempt=1, detail={"grace": 1}
        )

        said = "On 2026-03-01 09:00 UTC its lease had run out; its worker was there, and was given a little longer."
        assert said in told(row)
        assert not any("Attempt 1 started" in line for line in told(row))

    @pytest.mark.parametrize(
        ("state", "rests"),
        [
            (State.AVAILABLE, "It is due and waits for a worker."),
            (State.PENDING, "It is on its way to a worker."),
            (State.ACTIVE, "A worker runs it right now."),
            (State.RETRYABLE, "Its time has come; the next poll takes it."),
            (State.SCHEDULED, "Its time has come; the next poll takes it."),
        ],
    )
    def test_says_where_it_rests(self, make_task, told, state, rests):
        assert rests in told(make_task(task_key="delivery.ship", state=state))

    @pytest.mark.parametrize("state", [State.SCHEDULED, State.AVAILABLE, State.ACTIVE])
    def test_asks_for_a_worker_when_it_is_overdue(self, make_task, told, clock, now, state):
        row = make_task(task_key="delivery.ship", state=state)
        asked = "It is overdue: is a worker running?"
        assert asked not in told(row)

        clock.set(now + timedelta(minutes=1))

        assert (asked in told(row)) == (state != State.ACTIVE)

    def test_says_that_its_handler_is_not_known_any_more(self, make_task, told):
        said = told(make_task(task_key="gone.work"))

        assert "no handler of this key is known any more" in said[1]
        assert said[-1] == (
            "It has no definition any more, so that nothing runs it, and nothing cancels it: until the code has gone.work "
            "again, or somebody applies the plan, with manage.py timeline_apply gone."
        )


class DeliveryInShadow(Delivery):
    name = "delivery"
    shadow = True


class TestExplainInShadow:
    @pytest.fixture(autouse=True)
    def _in_shadow(self, _story):
        with only_timelines(DeliveryInShadow):
            yield

    def test_says_that_the_handler_was_not_entered(self, ship, told, clock):
        clock.run_next()

        assert told(ship)[2:] == [
            "Attempt 1 started on 2026-03-06 09:00 UTC by story clock.",
            "It would have run on 2026-03-06 09:00 UTC: its timeline was in shadow, so its handler was not entered.",
        ]

    def test_says_so_also_after_the_switch(self, ship, told, clock):
        clock.run_next()

        with only_timelines(Delivery):
            assert "its timeline was in shadow" in told(ship)[-1]

    def test_says_of_what_is_ahead_that_it_will_not_be_entered(self, ship, told):
        said = "Its timeline is in shadow: as long as that is so, its handler is not entered."
        assert told(ship)[2:] == [
            "It waits for its time, 2026-03-06 09:00 UTC.",
            said,
            "If it completes, delivery.ask follows.",
        ]

        with only_timelines(Delivery):
            assert said not in told(ship)

    def test_says_of_what_was_called_off_why(self, ship, told):
        cancel(ship, reason="not now", actor="ada")

        assert not any("shadow" in line for line in told(ship))


class TestWhy:
    @pytest.mark.parametrize("code", sorted(set(ReasonCode) - {ReasonCode.DONE}))
    def test_has_words_for_each_reason(self, make_task, code):
        row = make_task(state=State.CANCELLED, reason_code=code, reason="because {of} it", actor="ada")

        assert "because {of} it" in why(row)
        assert why(row).endswith(", by ada")

    @pytest.mark.parametrize("code", sorted(set(ReasonCode) - {ReasonCode.DONE}))
    def test_falls_back_on_the_words_of_the_code(self, make_task, code):
        assert str(ReasonCode(code).label) in why(make_task(state=State.CANCELLED, reason_code=code))

    def test_is_empty_where_the_state_says_it_all(self, make_task):
        assert why(make_task(state=State.COMPLETED)) == ""
        assert why(make_task()) == ""

    def test_takes_a_reason_of_an_operator(self, make_task):
        reason = Reason.operator("not now", "ada")
        row = make_task(state=State.CANCELLED, reason_code=reason.code, reason=reason.text, actor=reason.actor)

        assert why(row) == "not now, by ada"


class TestACauseThatIsNotThere:
    @pytest.mark.only_postgresql
    def test_is_left_out(self, make_task, told):
        """An older release let a task name an event that was rolled back; nothing in PostgreSQL refuses it."""
        row = make_task(cause_id=UUID(int=7))

        assert told(row)[0].endswith(" was scheduled ad hoc on 2026-03-01 09:00 UTC.")
