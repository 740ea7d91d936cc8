"""Leave: end a run by hand; what is open of it is cancelled."""

from datetime import timedelta

import pytest

from tests.testapp.models import Order
from timeline import Timeline, after, task
from timeline.dispatch.poll import stage
from timeline.exceptions import InvalidInput, NoOpenRun, WrongEntity
from timeline.lifecycle import Reason, ReasonCode, RunEnd, State
from timeline.models import ScheduledTask, TimelineRun
from timeline.operations.leave import end_runs, leave
from timeline.store.returned_rows import FIELDS
from timeline.testing import only_timelines


class Delivery(Timeline):
    entity = "testapp.Order"

    @task(after(days=1))
    def pack(self, order):
        return None

    @task(after(days=2))
    def ship(self, order):
        if order.note == "leave":
            leave_at("delivery", order, self.now)


def leave_at(timeline, entity, now, key="", reason="left", actor=""):
    return leave(timeline=timeline, entity=entity, key=key, reason=reason, actor=actor, now=now, using="default")


@pytest.fixture(autouse=True)
def _only_these(db):
    with only_timelines(Delivery):
        yield


class TestLeave:
    def test_ends_the_run_and_cancels_what_is_open(self, start_at, run_at, order, now, later):
        start_at("delivery", order, now)
        run_at(ScheduledTask.objects.get(task_key="delivery.pack"), later)

        run = leave_at("delivery", order, later, reason="moved house", actor="ada")

        stored = TimelineRun.objects.get()
        assert run == stored
        assert (run.ended_at, run.end_reason) == (stored.ended_at, stored.end_reason) == (later, "moved house")
        pack, ship = ScheduledTask.objects.in_order()
        assert pack.state == State.COMPLETED
        assert (ship.state, ship.reason_code, ship.reason, ship.actor) == (
            State.CANCELLED,
            "exit",
            "moved house",
            "ada",
        )
        assert ship.finished_at == later

    def test_ends_the_run_of_its_key_only(self, start_at, order, now):
        start_at("delivery", order, now, key="a")
        other = start_at("delivery", order, now, key="b").run

        leave_at("delivery", order, now, key="a")

        assert TimelineRun.objects.open().get() == other
        assert ScheduledTask.objects.open().filter(run=other).count() == 2

    @pytest.mark.parametrize("key", [None, 5, "\x00", "\ud800", "x" * 101], ids=ascii)
    def test_refuses_what_is_no_key_and_ends_nothing(self, start_at, order, now, key):
        start_at("delivery", order, now, key="a")

        with pytest.raises(InvalidInput, match=r"^key: "):
            leave_at("delivery", order, now, key=key)

        assert TimelineRun.objects.open().count() == 1

    @pytest.mark.parametrize("actor", [None, 5], ids=ascii)
    def test_refuses_an_actor_that_is_no_text(self, start_at, order, now, actor):
        start_at("delivery", order, now)

        with pytest.raises(InvalidInput, match=r"^actor: "):
            leave_at("delivery", order, now, actor=actor)

    def test_says_so_when_there_is_none(self, start_at, order, now):
        start_at("delivery", Order.objects.create(), now)

        with pytest.raises(NoOpenRun) as error:
            leave_at("delivery", order, now)

        assert error.value.timeline == "delivery"
        assert TimelineRun.objects.open().count() == 1

    def test_says_so_the_second_time(self, start_at, order, now):
        start_at("delivery", order, now)
        leave_at("delivery", order, now)

        with pytest.raises(NoOpenRun):
            leave_at("delivery", order, now)

    @pytest.mark.parametrize("entity", [Order(), Order(pk=999)], ids=str)
    def test_refuses_an_entity_that_is_not_there(self, db, now, entity):
        with pytest.raises(WrongEntity):
            leave_at("delivery", entity, now)

    def test_spares_the_task_whose_handler_says_it(self, start_at, run_at, order, now):
        Order.objects.update(note="leave")
        start_at("delivery", order, now)
        row = ScheduledTask.objects.get(task_key="delivery.ship")

        done = run_at(row, now + timedelta(days=2))

        assert done.state == State.COMPLETED
        assert ScheduledTask.objects.get(task_key="delivery.pack").state == State.CANCELLED
        assert TimelineRun.objects.get().end_reason == "left"


class TestEndRuns:
    def test_does_nothing_for_none(self, db, now, django_assert_num_queries):
        with django_assert_num_queries(0):
            assert end_runs([], RunEnd.EXIT, reason=Reason(ReasonCode.EXIT), now=now, using="default") == []

    def test_cancels_rows_in_every_open_state(self, start_at, order, now, later):
        run = start_at("delivery", order, now).run
        stage(now=later, using="default")

        cancelled = end_runs([run], RunEnd.EXIT, reason=Reason(ReasonCode.EXIT), now=later, using="default")

        assert {row.state for row in cancelled} == {State.CANCELLED}
        assert len(cancelled) == 2

    def test_gives_them_as_they_are_now(self, start_at, order, now, later):
        run = start_at("delivery", order, now).run

        for row in end_runs(
            [run], RunEnd.EXIT, reason=Reason(ReasonCode.EXIT, "sold", "ada"), now=later, using="default"
        ):
            there = ScheduledTask.objects.get(pk=row.pk)
            assert {name: getattr(row, name) for name in FIELDS} == {name: getattr(there, name) for name in FIELDS}

    def test_takes_the_code_for_a_reason_where_no_text_is_given(self, start_at, order, now):
        run = start_at("delivery", order, now).run

        end_runs([run], RunEnd.EXIT, reason=Reason(ReasonCode.EXIT), now=now, using="default")

        assert TimelineRun.objects.get().end_reason == "exit"

    def test_cuts_the_reason_to_its_column(self, start_at, order, now):
        run = start_at("delivery", order, now).run

        end_runs([run], RunEnd.EXIT, reason=Reason(ReasonCode.EXIT, "x" * 999), now=now, using="default")

        assert len(TimelineRun.objects.get().end_reason) == 200


class TestReasonOfLeaving:
    @pytest.mark.parametrize("reason", ["", "x" * 201, "half \ud800", None])
    def test_must_be_a_text_of_its_own(self, start_at, order, now, reason):
        start_at("delivery", order, now)

        with pytest.raises(InvalidInput) as refused:
            leave_at("delivery", order, now, reason=reason)

        assert refused.value.field == "reason"
        assert TimelineRun.objects.get().is_open

    def test_may_be_the_word_for_a_run_that_has_nothing_left(self, start_at, order, now):
        start_at("delivery", order, now)

        run = leave_at("delivery", order, now, reason="finished")

        assert (run.end, run.is_finished, run.end_reason) == (RunEnd.LEFT, False, "finished")


class TestQueriesOfLeaving:
    def test_are_few_and_none_is_a_savepoint(self, start_at, order, now, django_assert_max_num_queries):
        """Lock the entity, end the run, lock its tasks, cancel them, log it: in the caller's transaction as it is."""
        start_at("delivery", order, now)

        with django_assert_max_num_queries(5):
            leave_at("delivery", order, now)

    def test_leave_the_callers_transaction_whole_where_there_is_no_run(self, start_at, order, now):
        with pytest.raises(NoOpenRun):
            leave_at("delivery", order, now)

        assert start_at("delivery", order, now).created
