"""Conditions and effects of moves: which way is taken, under the lock of the move, and what is done in its transaction."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from tests.testapp.models import Effect, Order
from timeline import (
    BACK,
    IGNORE,
    STAY,
    Machine,
    Passage,
    Then,
    Timeline,
    TransitionNotAllowed,
    after,
    at,
    never,
    on,
    task,
    to,
)
from timeline.exceptions import InvalidInput, MoveNotAllowed
from timeline.features.machines.deadlines import deadlines_kept
from timeline.models import Event, RunEntry, ScheduledTask, TimelineRun, ref_of
from timeline.shortcuts import emit, emit_many
from timeline.testing import only_timelines

told: list[Passage] = []


def is_paid(order):
    return order.paid


def is_dear(order, passage):
    told.append(passage)
    return passage.payload.get("sum", 0) > 100


def note_it(order, passage):
    Effect.objects.create(name=f"{order.pk} {passage.source} {passage.target} {passage.run.state}")
    if passage.payload.get("breaks"):
        raise ValueError("no stock")


class Sale(Machine):
    entity = "testapp.Order"
    starts_on = "sale.opened"
    initial = "open"
    table = {
        "open": {
            "sale.asked": [to("checked", when=is_dear), to("sent", when=is_paid, do=note_it)],
            "sale.noted": to(STAY, do=note_it),
            "sale.sure": [to("sent", when=is_paid, do=note_it), IGNORE],
        },
        "checked": {"sale.fine": to(BACK, do=note_it), "sale.over": "closed"},
        "sent": {"sale.over": "closed"},
        "closed": {},
    }

    timers = {("open", "checked"): never}

    @task(on("sent", hours=1))
    def thank(self, order): ...


@pytest.fixture(autouse=True)
def _known(clock):
    told.clear()
    with only_timelines(Sale):
        yield


@pytest.fixture
def sale(order):
    emit("sale.opened", order)
    return order


def state():
    return TimelineRun.objects.get().state


def effects():
    return list(Effect.objects.order_by("pk").values_list("name", flat=True))


class TestConditions:
    def test_are_asked_in_their_order_and_the_first_that_holds_is_taken(self, sale):
        Order.objects.update(paid=True)

        emit("sale.asked", sale, payload={"sum": 500}, actor="ada")

        assert state() == "checked"
        assert effects() == []
        [passage] = told
        assert (passage.event, passage.payload, passage.actor) == ("sale.asked", {"sum": 500}, "ada")
        assert (passage.source, passage.target, passage.run.state) == ("open", "checked", "checked")

    def test_see_the_entity_as_it_is_under_the_lock(self, sale):
        """And not as whoever emits happens to hold it."""
        Order.objects.update(paid=True)
        assert not sale.paid

        emit("sale.asked", sale)

        assert state() == "sent"
        assert ScheduledTask.objects.get().task_key == "sale.thank"

    def test_get_an_entity_that_counts_as_false(self, order, monkeypatch):
        class Cart(Machine):
            entity = "testapp.Order"
            starts_on = "sale.opened"
            initial = "open"
            table = {
                "open": {"sale.asked": [to("good", when=lambda order: order is not None, title="is there"), "bad"]}
            }
            table |= {"good": {}, "bad": {}}
            timers = {"open": never}

        class Reading(Timeline):
            entity = "testapp.Order"
            starts_on = "sale.asked"

            @task(at("ships_at"))
            def ship(self, order): ...

        monkeypatch.setattr(Order, "__len__", lambda self: 0, raising=False)  # As a cart of nothing may have.
        with only_timelines(Cart, Reading):
            emit("sale.opened", order)
            emit("sale.asked", order)  # It starts a timeline that reads the entity, so it is held.

        assert TimelineRun.objects.get(timeline="cart").state == "good"

    def test_refuse_the_event_if_none_holds_as_a_state_without_it_does(self, sale):
        with pytest.raises(TransitionNotAllowed, match=r"None of its conditions holds: is dear, is paid\.") as refused:
            emit("sale.asked", sale)

        assert isinstance(refused.value, MoveNotAllowed)
        assert refused.value.unmet == ["is dear", "is paid"]
        assert state() == "open"
        assert not Event.objects.filter(name="sale.asked").exists()

    def test_may_leave_the_run_where_it_is(self, sale):
        emit("sale.sure", sale)

        assert state() == "open"
        assert Event.objects.filter(name="sale.sure").exists()

    def test_that_raise_refuse_the_event(self, sale, monkeypatch):
        with pytest.raises(TypeError):
            emit("sale.asked", sale, payload={"sum": "much"})

        assert state() == "open"
        assert not Event.objects.filter(name="sale.asked").exists()

    def test_are_not_asked_for_an_event_that_was_recorded_before(self, sale):
        emit("sale.asked", sale, payload={"sum": 500}, key="1")
        told.clear()

        emit("sale.asked", sale, payload={"sum": 500}, key="1")

        assert told == []


class TestEffects:
    def test_are_had_with_the_move(self, sale):
        Order.objects.update(paid=True)

        emit("sale.asked", sale)

        assert effects() == [f"{sale.pk} open sent sent"]

    def test_that_raise_undo_the_move(self, sale):
        Order.objects.update(paid=True)
        with transaction.atomic():
            with pytest.raises(ValueError, match="no stock"):
                emit("sale.asked", sale, payload={"breaks": True})
            assert Order.objects.count() == 1  # The transaction of the host goes on.

        assert state() == "open"
        assert effects() == []
        assert not Event.objects.filter(name="sale.asked").exists()
        assert not ScheduledTask.objects.exists()
        assert RunEntry.objects.count() == 1

    def test_are_undone_with_the_transaction_of_the_host(self, sale):
        with transaction.atomic():
            emit("sale.noted", sale)
            transaction.set_rollback(True)

        assert effects() == []

    def test_of_stay_and_of_the_way_back_are_told_where_that_leads(self, sale):
        emit("sale.noted", sale)
        emit("sale.asked", sale, payload={"sum": 500})

        with pytest.raises(MoveNotAllowed):
            emit("sale.noted", sale)

        emit("sale.fine", sale)
        assert effects() == [f"{sale.pk} open open open", f"{sale.pk} checked open open"]

    def test_are_had_once_for_an_event_with_a_key(self, sale):
        for _ in range(2):
            emit("sale.noted", sale, key="1")

        assert len(effects()) == 1

    def test_do_not_move_the_run_whose_move_they_are_of(self, sale):
        class Loop(Sale):
            name = "sale"
            timers = {"open": never}
            table = {
                "open": {"sale.asked": to("sent", do=lambda order: emit("sale.over", order), title="end it")},
                "sent": {"sale.over": "closed"},
                "closed": {},
            }

        with only_timelines(Loop), pytest.raises(InvalidInput, match="in an effect of a move of the same run"):
            emit("sale.asked", sale)

        assert state() == "open"


class TestMany:
    def test_take_as_many_statements_for_forty_as_for_twenty(self, db):
        counted = []
        for many in (2, 20, 40):  # The first time, the database is told of the pairs of states.
            orders = [Order.objects.create(paid=True) for _ in range(many)]
            emit_many("sale.opened", orders)
            with CaptureQueriesContext(connection) as queries:
                emit_many("sale.asked", orders, payload={})
            own = [each for each in queries if "testapp_effect" in each["sql"]]
            counted.append(len(queries) - len(own))
            assert len(own) == many

        assert counted[1] == counted[2]
        assert set(TimelineRun.objects.values_list("state", flat=True)) == {"sent"}

    def test_go_each_its_own_way(self, db):
        paid, unpaid = Order.objects.create(paid=True), Order.objects.create()
        emit_many("sale.opened", [paid, unpaid])

        emit_many("sale.sure", [paid, unpaid])

        assert {run.entity_id: run.state for run in TimelineRun.objects.all()} == {
            str(paid.pk): "sent",
            str(unpaid.pk): "open",
        }


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("paid", "hours"), [(True, 2), (False, 1)])
def test_a_deadline_stands_only_in_the_state_that_a_condition_did_not_leave(order, clock, paid, hours):
    class Ask(Machine):
        entity = "testapp.Order"
        starts_on = "ask.opened"
        initial = "asked"
        table = {
            "asked": {"ask.said": [to("checked", when=is_paid), STAY], "ask.late": "closed"},
            "checked": {"ask.late": "closed"},
            "closed": {},
        }
        timers = {"ask.late": on("asked", "checked", hours=2)}

    Order.objects.update(paid=paid)
    with only_timelines(Ask):
        emit("ask.opened", order)
        clock.advance(hours=1)
        with deadlines_kept("ask.said", ref_of(order), now=clock.now, using="default"):
            emit("ask.said", order)

    assert state() == ("checked" if paid else "asked")
    assert ScheduledTask.objects.open().get().scheduled_at == clock.now + timedelta(hours=hours)


@pytest.mark.django_db(transaction=True)
class TestAnOutcome:
    """A handler's Then(…) moves by conditions, too, in the transaction of its outcome."""

    @pytest.fixture
    def working(self, order):
        class Work(Machine):
            entity = "testapp.Order"
            starts_on = "work.begun"
            initial = "busy"
            table = {
                "busy": {"work.done": [to("good", when=is_paid, do=note_it), to("dear", when=is_dear)]},
                "good": {},
                "dear": {},
            }
            working = ("busy",)

            @task(after(minutes=1), atomic=False)
            def work(self, order):
                return Then("work.done", **self.event.payload)

        with only_timelines(Work):
            yield order

    def test_moves_with_its_effect(self, working, clock):
        Order.objects.update(paid=True)
        emit("work.begun", working)
        clock.advance(minutes=1)

        assert (ScheduledTask.objects.get().state, state()) == ("completed", "good")
        assert len(effects()) == 1

    @pytest.mark.parametrize(
        ("paid", "payload", "error"), [(False, {}, "None of its conditions"), (True, {"breaks": 1}, "no stock")]
    )
    def test_fails_where_it_does_not(self, working, clock, paid, payload, error):
        Order.objects.update(paid=paid)
        emit("work.begun", working, payload=payload)
        with clock.failing():
            clock.advance(timedelta(minutes=1))

        row = ScheduledTask.objects.get()
        assert (row.state, state()) == ("retryable", "busy")
        assert error in row.error
        assert effects() == []

    @pytest.mark.parametrize("atomic", [True, False])
    def test_plans_from_what_its_effect_has_written(self, order, clock, atomic):
        def put_off(order):
            order.ships_at = clock.now + timedelta(days=30)
            order.save()

        class Parcel(Machine):
            entity = "testapp.Order"
            starts_on = "work.begun"
            initial = "busy"
            table = {"busy": {"work.done": to("sent", do=put_off)}, "sent": {"work.over": "closed"}, "closed": {}}
            working = ("busy",)
            timers = {"sent": never}

            @task(at("ships_at"))
            def ship(self, order): ...

            @task(on("busy"), atomic=atomic)
            def work(self, order):
                return Then("work.done")

        Order.objects.update(ships_at=clock.now + timedelta(days=5))
        with only_timelines(Parcel):
            emit("work.begun", order)
            clock.run_due()

        row = ScheduledTask.objects.open().get(task_key="parcel.ship")
        assert (state(), row.scheduled_at) == ("sent", clock.now + timedelta(days=30))

    def test_leaves_nothing_open_in_a_run_that_its_effect_has_ended(self, order, clock):
        class Parcel(Machine):
            entity = "testapp.Order"
            starts_on = "work.begun"
            initial = "busy"
            table = {
                "busy": {"work.done": to("sent", do=lambda order: emit("work.quit", order), title="quit")},
                "sent": {"work.over": "closed"},
                "closed": {},
            }
            exits = {"work.quit": "quit"}
            working = ("busy",)

            @task(on("sent", hours=1))
            def thank(self, order): ...

            @task(on("busy"), atomic=False)
            def work(self, order):
                return Then("work.done")

        with only_timelines(Parcel):
            emit("work.begun", order)
            clock.run_due()

        assert TimelineRun.objects.get().end_reason == "quit"
        assert not ScheduledTask.objects.open().exists()

    @pytest.mark.parametrize("word", ["when", "do"])
    def test_fails_by_a_wrong_statement_and_is_not_kept_for_ever(self, order, clock, word):
        def ask_nobody(order):
            with connection.cursor() as cursor:
                cursor.execute("SELECT none FROM nowhere")

        class Parcel(Machine):
            entity = "testapp.Order"
            starts_on = "work.begun"
            initial = "busy"
            table = {"busy": {"work.done": to("sent", **{word: ask_nobody})}, "sent": {}}
            working = ("busy",)

            @task(on("busy"), atomic=False)
            def work(self, order):
                return Then("work.done")

        with only_timelines(Parcel), clock.failing():
            emit("work.begun", order)
            clock.run_due()

        row = ScheduledTask.objects.get()
        assert (row.state, row.attempt, row.failures, state()) == ("retryable", 1, 1, "busy")
        assert "nowhere" in row.error or "none" in row.error
