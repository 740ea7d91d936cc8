"""Execute many at once: one call for many entities, and each one's own outcome."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, connections, transaction
from django.db.models import Q

from tests.databases import VENDOR
from tests.engine.watching import AtEntry
from tests.testapp.models import Effect, Order
from timeline import Cancel, Discard, Retry, RetryAfter, at
from timeline.engine.groups import Watch
from timeline.lifecycle import Reason
from timeline.models import Event, ScheduledTask, TimelineRun
from timeline.operations.cancel import cancel

OPERATOR = Reason.operator("asked for", "ada")


@pytest.fixture
def calls():
    """The keys of the orders of each call."""
    return []


@pytest.fixture
def gather(crowd, calls):
    """Have so many due tasks of a handler that takes many: ``gather(3, act, …)``; ``act`` gives what it returns."""

    def declare(count, act=lambda job, orders: None, bulk=100, **options):
        def handler(job, orders):
            calls.append([order.pk for order in orders])
            Effect.objects.bulk_create([Effect(name=str(order.pk)) for order in orders])
            return act(job, orders)

        return crowd(count, handler, bulk=bulk, **options)

    return declare


def keys(rows):
    return [int(row.entity_id) for row in rows]


def told():
    return sorted(int(name) for name in Effect.objects.values_list("name", flat=True))


def ends(rows):
    return [(row.state, row.result, row.failures) for row in rows]


class TestACall:
    @pytest.mark.parametrize("atomic", [True, False])
    def test_is_one_for_many(self, gather, run_all, calls, atomic):
        rows = gather(20, lambda job, orders: {order: f"did {order.pk}" for order in orders}, atomic=atomic)

        done = run_all(rows)

        assert calls == [keys(rows)]
        assert ends(done) == [("completed", f"did {key}", 0) for key in keys(rows)]
        assert ScheduledTask.objects.filter(task_key="crowd.follow").count() == 20

    def test_is_for_no_more_than_declared(self, gather, run_all, calls):
        rows = gather(5, bulk=2)

        done = run_all(rows)

        all_keys = keys(rows)
        assert calls == [all_keys[:2], all_keys[2:4], all_keys[4:]]
        assert ends(done) == [("completed", None, 0)] * 5

    def test_has_an_entity_once(self, gather, run_all, calls, schedule_at, now, later):
        """Two tasks of one order: one after the other, so that results by entity say of which task they are."""
        [row, other] = gather(2, lambda job, orders: {order: str(job.tasks[order].task.pk) for order in orders})
        again = schedule_at("crowd.work", row.entity_ref, later, now).task

        done = run_all([row, again, other])

        assert calls == [keys([row, other]), keys([again])]
        assert ends(done) == [("completed", str(task.pk), 0) for task in (row, again, other)]

    def test_makes_as_many_statements_for_500_as_for_10(self, gather, run_all, statements_of):
        asked = []
        for count in (10, 500):
            rows = gather(count, bulk=1000)
            asked.append(statements_of(lambda rows=rows: run_all(rows)))

        assert asked[0] == asked[1]

    @pytest.mark.parametrize("atomic", [True, False])
    def test_is_in_a_transaction_where_it_is_atomic(self, gather, run_all, atomic, transactional_db):
        rows = gather(2, lambda job, orders: dict.fromkeys(orders, connection.in_atomic_block), atomic=atomic)

        assert [row.result for row in run_all(rows)] == [atomic] * 2


class TestWhatItReads:
    def test_is_of_each_entity_its_own(self, gather, run_all, later):
        def act(job, orders):
            assert job.now == later
            return {
                order: [str(job.tasks[order].task.pk), str(job.tasks[order].idempotency_key), job.tasks[order].lost]
                for order in orders
            }

        rows = gather(3, act)

        assert [row.result for row in run_all(rows)] == [[str(row.pk), str(row.pk), False] for row in rows]

    def test_has_the_run(self, gather, run_all):
        rows = gather(2, lambda job, orders: {order: str(job.tasks[order].run.pk) for order in orders})

        assert [row.result for row in run_all(rows)] == [str(row.run_id) for row in rows]


class TestWhatItReturns:
    """For each its own, and none of it is another's."""

    def returning(self, what):
        return lambda job, orders: {orders[1]: what, orders[0]: "fine", orders[2]: "fine"}

    @pytest.mark.parametrize("atomic", [True, False])
    @pytest.mark.parametrize(
        ("error", "end"),
        [
            (Cancel("not wanted"), ("cancelled", "handler", "not wanted", 0)),
            (Discard("no such address"), ("discarded", "handler", "no such address", 1)),
            (RetryAfter(timedelta(minutes=7), "busy"), ("retryable", "retry_after", "busy", 1)),
            (ValueError("boom"), ("retryable", "error", "boom", 1)),
            (
                {1, 2},
                ("retryable", "error", "result: has a set.", 1),
            ),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_may_be_an_exception_for_one(self, gather, run_all, error, end, atomic):
        rows = gather(3, self.returning(error), atomic=atomic)

        first, second, third = run_all(rows)

        assert ends([first, third]) == [("completed", "fine", 0)] * 2
        assert (second.state, second.reason_code, second.failures) == (end[0], end[1], end[3])
        assert second.reason.startswith(end[2])
        assert ScheduledTask.objects.filter(task_key="crowd.follow").count() == 2

    def test_may_say_when_to_try_again(self, gather, run_all, later):
        rows = gather(3, self.returning(RetryAfter(timedelta(minutes=7))))

        assert run_all(rows)[1].scheduled_at == later + timedelta(minutes=7)

    def test_may_leave_some_out(self, gather, run_all):
        rows = gather(2, lambda job, orders: {orders[0]: "said"})

        assert ends(run_all(rows)) == [("completed", "said", 0), ("completed", None, 0)]

    def test_may_name_entities_read_anew(self, gather, run_all):
        """An entity is known by its key, whichever instance of it."""
        rows = gather(2, lambda job, orders: {order: order.pk for order in Order.objects.all()})

        assert [row.result for row in run_all(rows)] == keys(rows)

    def test_may_be_nothing_after_the_entities_are_gone(self, gather, run_all, clock, later):
        clock.set(later)

        def act(job, orders):
            for order in orders:
                order.delete()

        done = run_all(gather(3, act))

        assert ends(done) == [("completed", None, 0)] * 3
        assert not Order.objects.exists()
        assert not TimelineRun.objects.filter(ended_at=None).exists()

    @pytest.mark.parametrize("atomic", [True, False])
    @pytest.mark.parametrize(
        ("what", "said"),
        [
            (lambda orders: ["fine"] * 3, "of a call for many is a list."),
            (lambda orders: {order.pk: "fine" for order in orders}, "names 3 that the call was not for."),
            (lambda orders: {Order(pk=-1): "fine"}, "names 1 that the call was not for."),
        ],
        ids=["a list", "keys", "a stranger"],
    )
    def test_must_be_a_mapping_of_those_it_was_for(self, gather, run_all, what, said, atomic):
        """A mistake of the whole call: all are tried again, each alone, and it costs nobody's budget."""
        rows = gather(3, lambda job, orders: what(orders), atomic=atomic)

        done = run_all(rows)

        assert ends(done) == [("retryable", None, 0)] * 3
        assert done[0].reason.startswith(f"result: {said}")
        assert told() == ([] if atomic else keys(rows))


class TestACallThatRaises:
    def failing(self, job, orders):
        if any(order.note == "bad" for order in orders):
            raise ValueError("boom")
        return dict.fromkeys(orders, "fine")

    @pytest.mark.parametrize("atomic", [True, False])
    def test_has_each_tried_alone_and_costs_no_budget(self, gather, run_all, calls, later, atomic):
        rows = gather(3, self.failing, atomic=atomic, retry=Retry(max_attempts=1, jitter=0))
        Order.objects.filter(pk=rows[1].entity_id).update(note="bad")

        done = run_all(rows)

        assert ends(done) == [("retryable", None, 0)] * 3
        assert {row.reason for row in done} == {"boom"}
        assert told() == ([] if atomic else keys(rows))
        calls.clear()
        ScheduledTask.objects.filter(state="retryable").update(scheduled_at=later)
        again = run_all(rows)
        assert calls == [[key] for key in keys(rows)]
        assert ends(again) == [("completed", "fine", 0), ("discarded", None, 1), ("completed", "fine", 0)]

    def test_for_one_alone_is_its_failure(self, gather, run_all):
        rows = gather(1, self.failing)
        Order.objects.update(note="bad")

        assert ends(run_all(rows)) == [("retryable", None, 1)]

    def test_cancel_is_for_all_of_them(self, gather, run_all):
        def act(job, orders):
            raise Cancel("no newsletter today")

        done = run_all(gather(3, act))

        assert [(row.state, row.reason) for row in done] == [("cancelled", "no newsletter today")] * 3
        assert told() == []

    def test_leaves_nothing_of_an_atomic_one_it_broke(self, gather, run_all):
        done = run_all(gather(3, lambda job, orders: transaction.set_rollback(True)))

        assert ends(done) == [("retryable", None, 0)] * 3
        assert told() == []


@pytest.mark.usefixtures("patient")
class TestACancelMeanwhile:
    def cancelling(self, victim, later):
        return AtEntry(
            lambda active: (
                cancel(task_ids=[active.pk], reason=OPERATOR, now=later, using="default")
                if active.pk == victim.pk
                else None
            )
        )

    def test_has_an_atomic_one_called_again_without_it(self, gather, run_all, calls, later):
        """All or nothing: what it wrote for the cancelled one is undone, with all else, and done again for the others."""
        rows = gather(3, lambda job, orders: dict.fromkeys(orders, "fine"))

        done = run_all(rows, watch=self.cancelling(rows[1], later))

        first, second, third = keys(rows)
        assert calls == [[first, second, third], [first, third]]
        assert ends(done) == [("completed", "fine", 0), ("cancelled", None, 0), ("completed", "fine", 0)]
        assert told() == [first, third]
        assert {row.attempt for row in done} == {1}

    def test_has_it_given_entities_as_they_are_then(self, gather, run_all, later):
        """Not as the call that was undone left them."""

        def act(job, orders):
            for order in orders:
                order.note += "told "
            Order.objects.bulk_update(orders, ["note"])

        rows = gather(3, act)

        run_all(rows, watch=self.cancelling(rows[1], later))

        notes = dict(Order.objects.values_list("pk", "note"))
        assert notes == dict(zip(keys(rows), ["told ", "", "told "], strict=True))

    def test_leaves_a_plain_one_as_it_was(self, gather, run_all, calls, later):
        rows = gather(3, lambda job, orders: dict.fromkeys(orders, "fine"), atomic=False)

        done = run_all(rows, watch=self.cancelling(rows[1], later))

        assert calls == [keys(rows)]
        assert ends(done) == [("completed", "fine", 0), ("cancelled", None, 0), ("completed", "fine", 0)]
        assert told() == keys(rows)

    def test_of_all_leaves_nothing_to_call(self, gather, run_all, calls, later):
        rows = gather(1)

        done = run_all(rows, watch=self.cancelling(rows[0], later))

        assert (len(calls), told()) == (1, [])
        assert ends(done) == [("cancelled", None, 0)]


class TestTheLastLook:
    def test_leaves_out_what_is_not_true_any_more(self, gather, run_all, calls, now, later):
        rows = gather(4, when=at("ships_at"))
        gone, moved, closed, left = rows
        Order.objects.filter(pk=gone.entity_id).delete()
        Order.objects.filter(pk=moved.entity_id).update(ships_at=now + timedelta(days=9))
        Event.objects.create(
            name="order.closed",
            entity_label="testapp.order",
            entity_id=closed.entity_id,
            key="k",
            payload={},
            occurred_at=later,
            recorded_at=later,
        )

        done = run_all(rows)

        assert calls == [keys([left])]
        assert [row.reason_code for row in done] == ["entity_gone", "superseded", "exit", "done"]

    @pytest.mark.parametrize("guard", [Q(paid=True), lambda order: order.paid], ids=["a condition", "a function"])
    @pytest.mark.parametrize("option", ["only_if", "unless"])
    def test_asks_the_guard_of_each(self, gather, run_all, calls, guard, option):
        rows = gather(3, **{option: guard})
        Order.objects.filter(pk=rows[1].entity_id).update(paid=True)

        done = run_all(rows)

        ran = [rows[1]] if option == "only_if" else [rows[0], rows[2]]
        assert calls == [keys(ran)]
        assert [row.reason_code for row in done] == ["done" if row in ran else "guard" for row in rows]

    @pytest.mark.parametrize("atomic", [False, *([True] if VENDOR == "postgresql" else [])])
    def test_is_taken_again_where_the_guards_took_long(
        self, gather, run_all, calls, emit_at, later, hasty, transactional_db, atomic
    ):
        """While the last one's guard is asked, somebody commits an exit of the first."""

        def guard(order):
            if order.pk == max(keys(rows)) and not Event.objects.exists():
                with ThreadPoolExecutor(1) as elsewhere:
                    elsewhere.submit(close_first).result()
            return False

        def close_first():
            try:
                emit_at("order.closed", Order.objects.get(pk=rows[0].entity_id), later)
            finally:
                connections.close_all()

        rows = gather(3, unless=guard, atomic=atomic)

        done = run_all(rows)

        assert calls == [keys(rows[1:])]
        assert [(row.state, row.attempt) for row in done] == [("cancelled", 1), *[("completed", 1)] * 2]

    def test_calls_nobody_when_all_are_refused(self, gather, run_all, calls):
        done = run_all(gather(2, only_if=Order.__str__, unless=Order.__str__))

        assert calls == []
        assert [row.reason_code for row in done] == ["guard"] * 2

    def test_in_shadow_enters_nothing(self, gather, run_all, calls):
        done = run_all(gather(3, declared={"shadow": True}))

        assert calls == []
        assert [(row.state, row.reason_code) for row in done] == [("completed", "shadow")] * 3

    def test_spares_what_it_is_running_when_it_ends_their_runs(self, gather, run_all, emit_at, later):
        def act(job, orders):
            for order in orders:
                emit_at("order.closed", order, later)
            return dict.fromkeys(orders, "closed it")

        done = run_all(gather(3, act))

        assert ends(done) == [("completed", "closed it", 0)] * 3
        assert set(TimelineRun.objects.values_list("end_reason", flat=True)) == {"closed"}
        assert not ScheduledTask.objects.open().exists()


class TestAWorkerThatStops:
    class AfterTheFirst(Watch):
        def __init__(self, calls):
            self.calls = calls

        def stopping(self):
            return len(self.calls) >= 1

    def test_gives_back_what_the_next_calls_were_for(self, gather, run_all, calls):
        rows = gather(5, bulk=2)

        done = run_all(rows, watch=self.AfterTheFirst(calls))

        assert len(calls) == 1
        assert [(row.state, row.reason_code) for row in done] == [("completed", "done")] * 2 + [
            ("retryable", "released")
        ] * 3
        assert {(row.failures, row.lost) for row in done} == {(0, 0)}
