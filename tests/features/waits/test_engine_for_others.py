"""Wait in a handler for an event of another entity: ``self.wait_for(…, of=parcel)``."""

from datetime import timedelta

import pytest
from django.db import transaction

from tests.engine import conftest as engine
from tests.testapp.models import Customer, Order, Parcel
from timeline import Timeline, after, step, task
from timeline.dispatch.poll import stage
from timeline.exceptions import InvalidInput
from timeline.features.maintenance.relabel import relabel
from timeline.features.steps.reading import steps_of_task
from timeline.features.waits.reading import wait_of
from timeline.lifecycle import Reason, State
from timeline.models import EntityRef, LogEntry, StepRecord, Wake
from timeline.operations.follow import entity_deleted
from timeline.operations.move import run_now
from timeline.reading.explanation import explain
from timeline.signals import attempts_failed

declared = engine.declared  # Fixtures.

TEN_MINUTES = timedelta(minutes=10)


@pytest.fixture
def parcel(db):
    """What the handler waits for; no timeline is about it."""
    return Parcel.objects.create()


def waiting(parcel, *events, wait=None, **given):
    """A handler that waits for an event of a parcel."""

    class Job(Timeline):
        entity = "testapp.Order"
        exits = {"order.closed": "closed"}

        @task(after(days=1), atomic=False)
        def work(self, order):
            got = wait(self) if wait else self.wait_for(*events, within=TEN_MINUTES, of=parcel, **given)
            return got.payload if got else "nothing"

        @step(atomic=False)
        def ask(self): ...

    return Job


@pytest.fixture
def row(declared, parcel, run_at, later):
    """A task at rest that waits for ``parcel.arrived``."""
    row = declared(waiting(parcel, "parcel.arrived"))
    run_at(row, later)
    row.refresh_from_db()
    return row


def staged(now):
    return stage(now=now, using="default")


def state_of(row):
    row.refresh_from_db()
    return row.state, row.reason_code, row.scheduled_at


class TestAHandlerThatWaits:
    def test_rests_until_its_deadline(self, row, parcel, later):
        assert state_of(row)[:2] == (State.RETRYABLE, "waiting")
        assert later + TEN_MINUTES <= row.scheduled_at < later + TEN_MINUTES + timedelta(minutes=1)
        assert (row.awaits_label, row.awaits_id, row.awaits_other) == ("testapp.parcel", str(parcel.pk), True)

    def test_is_waked_by_the_next_poll_and_gets_the_event(self, row, parcel, later, emit_at, run_at):
        """Who emits has only the parcel locked, and leaves a note; it is gone with what it says."""
        soon = later + timedelta(minutes=1)

        emit_at("parcel.arrived", parcel, soon, payload={"n": 1})

        assert state_of(row)[0] == State.RETRYABLE
        assert staged(soon) == 1
        assert state_of(row) == (State.AVAILABLE, "event", soon)
        assert row.reason == f"parcel.arrived of testapp.parcel {parcel.pk} came"
        assert not Wake.objects.exists()
        done = run_at(row, soon)
        assert (done.result, done.failures) == ({"n": 1}, 0)

    def test_gets_what_came_before_it_waited(self, declared, parcel, later, emit_at, run_at):
        row = declared(waiting(parcel, "parcel.arrived"))
        emit_at("parcel.arrived", parcel, later - timedelta(seconds=1), payload={"n": 1})

        assert run_at(row, later).result == {"n": 1}

    @pytest.mark.parametrize(("before", "result"), [(timedelta(microseconds=1), {"n": 1}), (timedelta(0), "nothing")])
    def test_gets_what_was_recorded_before_the_deadline_only(self, row, parcel, emit_at, run_at, before, result):
        until = row.scheduled_at
        emit_at("parcel.arrived", parcel, until - before, payload={"n": 1}, occurred_at=until - TEN_MINUTES)

        assert run_at(row, until + timedelta(hours=1)).result == result

    def test_is_waked_by_the_key_only_that_it_waits_for(self, declared, parcel, later, emit_at, run_at):
        row = declared(waiting(parcel, "parcel.arrived", key="7"))
        run_at(row, later)

        emit_at("parcel.arrived", parcel, later, key="8")
        assert not Wake.objects.exists()
        Wake.objects.create(name="parcel.arrived", key="8", entity_label="testapp.parcel", entity_id=str(parcel.pk))
        assert staged(later) == 0
        emit_at("parcel.arrived", parcel, later, key="7", payload={"n": 7})

        assert staged(later) == 1
        assert run_at(row, later).result == {"n": 7}

    def test_is_not_waked_by_what_is_not_its(self, row, parcel, order, later, emit_at):
        """Of another parcel, of its own entity, of another name."""
        for name, whose in (("parcel.arrived", Parcel.objects.create()), ("parcel.arrived", order), ("x", parcel)):
            emit_at(name, whose, later)

        assert (staged(later), Wake.objects.count()) == (0, 0)
        assert state_of(row)[0] == State.RETRYABLE

    def test_is_not_waked_by_what_was_rolled_back(self, row, parcel, later, emit_at):
        with transaction.atomic():
            emit_at("parcel.arrived", parcel, later)
            transaction.set_rollback(True)

        assert (staged(later), Wake.objects.count()) == (0, 0)

    def test_waits_for_its_own_entity_if_that_is_given(self, declared, order, later, emit_at, run_at):
        """Who emits has its lock, and needs no poll to wake it."""
        row = declared(waiting(order, "order.paid"))
        run_at(row, later)

        emit_at("order.paid", order, later, payload={"n": 1})

        assert state_of(row)[0] == State.AVAILABLE
        assert not Wake.objects.exists()
        assert run_at(row, later).result == {"n": 1}

    def test_waits_for_each_of_two_by_the_same_name(self, declared, parcel, later, emit_at, run_at):
        """Whose event it is tells waits apart."""
        other = Parcel.objects.create()

        def both(job):
            first = job.wait_for("parcel.arrived", within=TEN_MINUTES, of=parcel)
            second = job.wait_for("parcel.arrived", within=TEN_MINUTES, of=other)
            return first and second

        row = declared(waiting(parcel, wait=both))
        run_at(row, later)
        emit_at("parcel.arrived", parcel, later)
        staged(later)
        run_at(row, later)
        assert state_of(row)[0] == State.RETRYABLE

        emit_at("parcel.arrived", other, later, payload={"n": 2})
        staged(later)

        assert run_at(row, later).result == {"n": 2}

    @pytest.mark.parametrize(("of", "by"), [("customer", "account"), ("account", "customer")])
    def test_waits_for_an_entity_by_whichever_of_its_names(self, declared, later, emit_at, run_at, of, by):
        """A child, and its parent of multi-table inheritance."""
        customer = Customer.objects.create()
        named = {"customer": customer, "account": customer.account_ptr}
        row = declared(waiting(named[of], "account.closed"))
        run_at(row, later)

        emit_at("account.closed", named[by], later, payload={"n": 1})

        assert staged(later) == 1
        assert run_at(row, later).result == {"n": 1}

    def test_rests_again_if_it_is_run_before(self, row, later, run_at, emit_at, parcel):
        run_now(task_ids=[row.pk], reason=Reason.operator("why"), now=later, using="default")
        run_at(row, later)
        assert state_of(row)[:2] == (State.RETRYABLE, "waiting")

        emit_at("parcel.arrived", parcel, later)

        assert staged(later) == 1

    def test_is_ended_by_an_exit(self, row, order, parcel, later, emit_at):
        """The note of what came meanwhile finds nobody, and is gone."""
        emit_at("parcel.arrived", parcel, later)
        emit_at("order.closed", order, later)

        assert staged(later) == 0
        assert state_of(row)[:2] == (State.CANCELLED, "exit")
        assert not Wake.objects.exists()

    def test_says_for_whose_event_it_waits(self, row, parcel, later):
        told = explain(row, now=later, using="default")
        wait = wait_of(row, using="default")

        assert f"waits for parcel.arrived of testapp.parcel {parcel.pk} until" in told
        assert wait.entity == EntityRef("testapp.parcel", str(parcel.pk))
        [line] = steps_of_task(row, using="default")
        assert line.name == f"(wait) parcel.arrived of testapp.parcel {parcel.pk}"

    def test_keeps_what_it_waits_for_across_attempts(self, row, parcel, later):
        record = StepRecord.objects.get()

        assert (record.place["of"], record.place["other"]) == (["testapp.parcel", str(parcel.pk)], True)

    def test_follows_a_model_that_was_renamed(self, declared, order, later, run_at, emit_at):
        """Notes, tasks and records."""
        other = Order.objects.create()
        row = declared(waiting(other, "order.paid"))
        run_at(row, later)
        emit_at("order.paid", other, later, payload={"n": 1})
        type(row).objects.filter(pk=row.pk).update(awaits_label="shop.order")
        Wake.objects.update(entity_label="shop.order")
        record = StepRecord.objects.get()
        old = {"name": record.name.replace("testapp.order", "shop.order"), "place": record.place}
        old["place"] |= {"of": ["shop.order", str(other.pk)]}
        StepRecord.objects.filter(pk=record.pk).update(**old)

        relabel(old="shop.order", new="testapp.order", using="default")

        assert staged(later) == 1
        assert run_at(row, later).state == State.COMPLETED
        assert StepRecord.objects.get().name == record.name  # The wait that it had begun, and no other.


class TestWhatIsDeleted:
    def test_is_waited_for_no_more(self, declared, later, run_at):
        """It was of a timeline's model, so that the deletion is heard: the time has run out."""
        other = Order.objects.create()
        ref = EntityRef("testapp.order", str(other.pk))
        row = declared(waiting(ref, "order.paid"))
        run_at(row, later)

        other.delete()

        assert staged(later) == 1
        assert state_of(row)[0] == State.AVAILABLE
        assert row.reason == f"{ref} was deleted, for whose event it waited"
        assert run_at(row, later).result == "nothing"

    def test_counts_by_what_came_before(self, declared, later, run_at, emit_at):
        other = Order.objects.create()
        row = declared(waiting(EntityRef("testapp.order", str(other.pk)), "order.paid"))
        run_at(row, later)
        emit_at("order.paid", other, later, payload={"n": 1})
        other.delete()
        staged(later)

        assert run_at(row, later).result == {"n": 1}

    def test_is_not_waited_for_at_all(self, declared, parcel, later, run_at):
        row = declared(waiting(parcel, "parcel.arrived"))
        Parcel.objects.all().delete()
        Parcel.objects.create()

        assert run_at(row, later).result == "nothing"

    def test_leaves_no_note_where_nobody_waits(self, order, now):
        entity_deleted(ref=EntityRef("testapp.order", str(order.pk)), now=now, using="default")

        assert not Wake.objects.exists()


class TestWhatIsGivenWrongly:
    @pytest.mark.parametrize(
        ("whose", "said"),
        [
            (lambda: None, "of: is None"),
            (lambda: 7, "no model instance"),
            (Order, "no primary key yet"),
            (lambda: EntityRef("", ""), "of: is"),
            (lambda: EntityRef("testapp.Order", "7"), "of: is"),
            (lambda: EntityRef("testapp.order", "007"), "of: is"),
            (lambda: EntityRef("testapp.order", "\0"), "of: is"),
        ],
    )
    def test_is_refused(self, declared, later, run_at, whose, said):
        told = []

        def hear(failed, **_more):
            told.extend(failed)

        attempts_failed.connect(hear)
        row = declared(waiting(None, wait=lambda job: job.wait_for("a", within=TEN_MINUTES, of=whose())))

        done = run_at(row, later)

        attempts_failed.disconnect(hear)
        assert said in done.error
        assert done.reason_code == "error"

    def test_is_refused_of_another_database(self, declared, later, run_at, monkeypatch):
        parcel = Parcel()
        parcel._state.db = "other"

        done = run_at(declared(waiting(parcel, "parcel.arrived")), later)

        assert "is in the database other" in done.error

    def test_is_refused_in_a_unit_test_as_well(self, order):
        with pytest.raises(InvalidInput, match="is None"):
            waiting(None, "parcel.arrived")(awaited=None).work(order)


class TestManyThatWait:
    def test_are_waked_by_one_poll_in_sets(self, parcel, make_task, later, emit_at, statements_of):
        """As many statements for many as for few."""

        def wake(count):
            for _ in range(count):
                order = Order.objects.create()
                columns = {"state": State.RETRYABLE, "attempt": 1, "reason_code": "waiting", "awaits_other": True}
                columns |= {"awaits": "a", "awaits_label": "testapp.parcel", "awaits_id": str(parcel.pk)}
                columns |= {"entity_label": "testapp.order", "entity_id": str(order.pk)}
                make_task(scheduled_at=later + timedelta(days=9), **columns)
            emit_at("a", parcel, later)
            return statements_of(lambda: stage(now=later, using="default"))

        few = wake(2)
        many = wake(30)

        assert len(few) == len(many)
        assert LogEntry.objects.filter(reason_code="event").count() == 32

    def test_are_all_waked_though_there_are_more_than_go_together(self, parcel, make_task, later, emit_at, monkeypatch):
        monkeypatch.setattr("timeline.features.waits.wake.BATCH", 3)
        for number in range(8):
            columns = {"awaits": "a", "awaits_label": "testapp.parcel", "awaits_id": str(parcel.pk)}
            columns |= {"entity_label": "testapp.order", "entity_id": str(number), "awaits_other": True}
            make_task(scheduled_at=later + timedelta(days=9), **columns)
        for key in "abcd":
            emit_at("a", parcel, later, key=key)

        assert staged(later) == 8
        assert not Wake.objects.exists()
