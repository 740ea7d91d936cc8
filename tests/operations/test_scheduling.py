"""Schedule: one task for an entity, without a run."""

from datetime import datetime, timedelta
from uuid import UUID

import pytest
from django.db import connection, transaction

from tests.testapp.models import Order, Parcel
from timeline import Timeline, after, task
from timeline.exceptions import (
    DateOutOfRange,
    InvalidInput,
    KeyConflict,
    NaiveDatetime,
    NotPlainJSON,
    PayloadTooLarge,
    UnknownTask,
    WrongEntity,
)
from timeline.features.maintenance.prune import prune
from timeline.lifecycle import Reason, State
from timeline.models import Event, ScheduledTask
from timeline.operations.cancel import cancel
from timeline.operations.redrive import redrive
from timeline.testing import only_timelines


class Delivery(Timeline):
    entity = "testapp.Order"
    exits = {"order.closed": "closed"}

    @task(priority=-5, queue="slow", expires=timedelta(hours=1))
    def call(self, order):
        return self.task.payload

    @task(after(days=1))
    def pack(self, order):
        return None


class Sweep(Timeline):
    @task()
    def sweep(self):
        return None


@pytest.fixture(autouse=True)
def _only_these(db):
    with only_timelines(Delivery, Sweep):
        yield


class TestSchedule:
    def test_writes_a_row_without_a_run(self, schedule_at, order, now, later):
        row, created = schedule_at("delivery.call", order, later, now, payload={"n": 1})

        assert created
        row.refresh_from_db()
        assert (row.run, row.entity_ref, row.payload) == (None, ("testapp.order", str(order.pk)), {"n": 1})
        assert (row.state, row.nominal_at, row.scheduled_at) == (State.SCHEDULED, later, later)
        assert (row.priority, row.queue, row.expires_at) == (-5, "slow", later + timedelta(hours=1))
        assert (row.anchor, row.revision, row.occurrence) == ("", 1, str(row.pk))

    def test_makes_it_available_when_it_is_due_already(self, schedule_at, order, now):
        assert schedule_at("delivery.call", order, now, now).task.state == State.AVAILABLE

    def test_gives_the_handler_the_payload(self, schedule_at, run_at, order, now):
        row = schedule_at("delivery.call", order, now, now, payload={"n": 1}).task

        assert run_at(row, now).result == {"n": 1}

    def test_takes_any_declared_task(self, schedule_at, run_at, order, now):
        """One with a schedule of its own, too: the time given counts."""
        row = schedule_at("delivery.pack", order, now, now).task

        assert run_at(row, now).state == State.COMPLETED

    def test_takes_no_entity_for_a_system_timelines_task(self, schedule_at, now):
        assert schedule_at("sweep.sweep", None, now, now).task.entity_ref == ("", "")

    def test_keeps_the_event_it_is_due_to(self, schedule_at, emit_at, order, now):
        event = emit_at("order.seen", order, now).event

        assert schedule_at("delivery.call", order, now, now, cause=event).task.cause == event

    @pytest.mark.only_postgresql
    def test_looks_for_the_event_in_the_same_statement(
        self, schedule_at, emit_at, order, now, django_assert_num_queries
    ):
        event = emit_at("order.seen", order, now).event

        with django_assert_num_queries(1):
            schedule_at("delivery.call", order, now, now, cause=event)

    def test_is_not_ended_by_an_exit(self, schedule_at, emit_at, order, now, later):
        row = schedule_at("delivery.call", order, later, now).task

        emit_at("order.closed", order, now)

        row.refresh_from_db()
        assert row.state == State.SCHEDULED

    @pytest.mark.only_postgresql
    def test_takes_one_statement(self, schedule_at, order, now, later, django_assert_num_queries):
        with django_assert_num_queries(1):
            schedule_at("delivery.call", order, later, now)


class TestKeys:
    def test_schedule_a_task_once(self, schedule_at, order, now, later):
        first = schedule_at("delivery.call", order, later, now, key="k", payload={"n": 1})

        again = schedule_at("delivery.call", order, later, now, key="k", payload={"n": 1})

        assert (again.task, again.created) == (first.task, False)
        assert ScheduledTask.objects.get().occurrence == "k"

    def test_know_a_number_again_however_it_was_stored(self, schedule_at, order, now, later):
        schedule_at("delivery.call", order, later, now, key="k", payload={"n": 1e23})

        assert not schedule_at("delivery.call", order, later, now, key="k", payload={"n": 1e23}).created

    def test_tell_apart_what_only_python_takes_for_the_same(self, schedule_at, order, now, later):
        schedule_at("delivery.call", order, later, now, key="k", payload={"n": 1})

        with pytest.raises(KeyConflict):
            schedule_at("delivery.call", order, later, now, key="k", payload={"n": True})

    def test_answer_with_the_latest_revision(self, schedule_at, order, now, later):
        first = schedule_at("delivery.call", order, later, now, key="k").task
        operator = Reason.operator("no", "ada")
        cancel(task_ids=[first.pk], reason=operator, now=now, using="default")
        [second] = redrive(task_ids=[first.pk], reason=operator, now=now, using="default")

        assert schedule_at("delivery.call", order, later, now, key="k") == (second, False)

    @pytest.mark.parametrize("other", [{"payload": {"n": 2}}, {"hours": 1}], ids=str)
    def test_refuse_another_time_or_payload(self, schedule_at, order, now, later, other):
        schedule_at("delivery.call", order, later, now, key="k", payload={"n": 1})
        later += timedelta(hours=other.pop("hours", 0))

        with pytest.raises(KeyConflict):
            schedule_at("delivery.call", order, later, now, key="k", **{"payload": {"n": 1}} | other)

        assert ScheduledTask.objects.get().payload == {"n": 1}

    def test_are_of_one_kind_and_entity(self, schedule_at, order, now):
        schedule_at("delivery.call", order, now, now, key="k")

        assert schedule_at("delivery.pack", order, now, now, key="k").created
        assert schedule_at("delivery.call", Order.objects.create(), now, now, key="k").created

    def test_are_free_again_when_the_row_is_pruned_meanwhile(self, schedule_at, order, now, later):
        """Its place was taken when it was to be inserted, and when that row was to be read it was gone."""
        first = schedule_at("delivery.call", order, now, now, key="k").task
        cancel(task_ids=[first.pk], reason=Reason.operator("no", "ada"), now=now, using="default")

        def prune_before_it_is_read(execute, sql, *given):
            if sql.startswith("SELECT") and "occurrence" in sql and not pruned:
                pruned.append(sql)
                prune(ended_before=later, using="default")
            return execute(sql, *given)

        pruned = []
        with connection.execute_wrapper(prune_before_it_is_read):
            again = schedule_at("delivery.call", order, later, later, key="k")

        assert pruned
        assert again.created
        assert ScheduledTask.objects.get() == again.task != first

    def test_left_out_make_one_each_time(self, schedule_at, order, now):
        for _ in range(2):
            schedule_at("delivery.call", order, now, now)

        assert ScheduledTask.objects.count() == 2


class TestACauseThatIsNotThere:
    """Nothing in PostgreSQL would refuse it: the column is no foreign key there."""

    def test_is_refused_when_it_was_rolled_back(self, schedule_at, emit_at, order, now):
        with transaction.atomic():
            event = emit_at("order.seen", order, now).event
            transaction.set_rollback(True)

        with pytest.raises(InvalidInput, match=r"cause: .* is not in the database 'default'"):
            schedule_at("delivery.call", order, now, now, cause=event)

        assert not ScheduledTask.objects.exists()

    def test_is_refused_when_it_was_never_saved(self, schedule_at, order, now):
        event = Event(name="order.seen", occurred_at=now, recorded_at=now)

        with pytest.raises(InvalidInput, match="cause"):
            schedule_at("delivery.call", order, now, now, key="k", cause=event)

        assert not ScheduledTask.objects.exists()

    def test_does_not_matter_where_the_key_was_used_before(self, schedule_at, emit_at, order, now):
        event = emit_at("order.seen", order, now).event
        first = schedule_at("delivery.call", order, now, now, key="k", cause=event).task

        assert schedule_at("delivery.call", order, now, now, key="k", cause=event) == (first, False)


class TestWrongInput:
    @pytest.mark.parametrize(
        ("given", "error"),
        [
            ({"task_key": "delivery.gone"}, UnknownTask),
            ({"task_key": "gone.call"}, UnknownTask),
            ({"task_key": "delivery"}, UnknownTask),
            ({"entity": None}, WrongEntity),
            ({"entity": Parcel(pk=UUID(int=7))}, WrongEntity),
            ({"entity": Order()}, WrongEntity),
            ({"entity": Order(pk=999)}, WrongEntity),
            ({"task_key": "sweep.sweep"}, WrongEntity),
            ({"at": datetime(2026, 1, 1)}, NaiveDatetime),  # noqa: DTZ001 (that is the case)
            ({"at": datetime.fromisoformat("9000-01-01T00:00:00+00:00")}, DateOutOfRange),
            ({"payload": ["n"]}, InvalidInput),
            ({"payload": {"n": object()}}, NotPlainJSON),
            ({"payload": {"t": "x" * 70_000}}, PayloadTooLarge),
            ({"key": "x" * 101}, InvalidInput),
            ({"key": None}, InvalidInput),
            ({"task_key": None}, InvalidInput),
            ({"task_key": 5}, InvalidInput),
        ],
        ids=lambda given: next(iter(given)) if isinstance(given, dict) else given.__name__,
    )
    def test_writes_nothing(self, schedule_at, order, now, given, error):
        given = {"task_key": "delivery.call", "entity": order, "at": now} | given

        with pytest.raises(error):
            schedule_at(given.pop("task_key"), given.pop("entity"), given.pop("at"), now, **given)

        assert not ScheduledTask.objects.exists()
        assert not Event.objects.exists()
