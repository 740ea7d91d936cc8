"""Execute in a transaction shared by many: all of it or nothing, and then each in its own."""

import pytest
from django.db import connection, transaction

from tests.engine.sharing import RAISED, assert_told_once, ends, keys, telling_once
from tests.engine.watching import AtEntry
from tests.testapp.models import Effect, Order
from timeline import Retry
from timeline.engine.groups import Watch
from timeline.lifecycle import Reason
from timeline.models import ScheduledTask
from timeline.operations.cancel import cancel

pytestmark = pytest.mark.usefixtures("patient")

OPERATOR = Reason.operator("asked for", "ada")


@pytest.fixture
def entered():
    """The keys of the orders of each entry."""
    return []


@pytest.fixture
def gather(crowd, entered):
    """Have so many due tasks that share a transaction, each of which tells its order once: ``gather(3, act, …)``."""

    def declare(count, act=lambda job, order: None, **options):
        return crowd(count, telling_once(entered, act), atomic="shared", **options)

    return declare


class TestASharedTransaction:
    def test_is_one_for_all(self, gather, run_all, entered, transactional_db):
        """Each sees what those before it wrote, and all are recorded with their follow-ups when the last has run."""

        def act(job, order):
            assert connection.in_atomic_block
            return [Effect.objects.count(), ScheduledTask.objects.filter(state="completed").count()]

        rows = gather(5, act)

        done = run_all(rows)

        assert ends(done) == [("completed", [number, 0], 0, 1) for number in range(1, 6)]
        assert entered == keys(rows)
        assert_told_once(rows)
        assert ScheduledTask.objects.filter(task_key="crowd.follow").count() == 5

    def test_makes_as_many_statements_for_100_as_for_10(self, crowd, run_all, statements_of):
        asked = []
        for count in (10, 100):
            rows = crowd(count, atomic="shared")
            asked.append(statements_of(lambda rows=rows: run_all(rows)))

        assert asked[0] == asked[1]

    def test_lasts_no_longer_than_a_group(self, gather, run_all, hasty, entered):
        """What there was no time for has a fresh last look first."""
        rows = gather(3, lambda job, order: Order.objects.filter(pk=order.pk + 1).update(note="before "))

        run_all(rows)

        notes = dict(Order.objects.values_list("pk", "note"))
        first, *others = keys(rows)
        assert notes[first] == "told "
        assert [notes[key] for key in others] == ["before told "] * 2

    def test_calls_what_waits_for_its_commit(self, gather, run_all, transactional_db):
        called = []
        rows = gather(3, lambda job, order: transaction.on_commit(lambda: called.append(order.pk)))

        run_all(rows)

        assert called == keys(rows)

    def test_ends_where_the_worker_stops(self, gather, run_all, entered):
        class Stop(Watch):
            def stopping(self):
                return len(entered) == 2

        rows = gather(4)

        done = run_all(rows, watch=Stop())

        assert [row.state for row in done] == ["completed", "completed", "retryable", "retryable"]
        assert {row.reason_code for row in done[2:]} == {"released"}
        assert_told_once(rows[:2])


class TestOneThatRaises:
    @pytest.mark.parametrize(("error", "end"), RAISED)
    def test_has_each_run_in_a_transaction_of_its_own(self, gather, run_all, entered, error, end):
        """Nothing of the shared one is left, in the database or in the entities that the handlers are given again."""

        def act(job, order):
            if order.pk == middle:
                raise error
            return "fine"

        rows = gather(3, act)
        first, middle, last = keys(rows)

        done = run_all(rows)

        fine = ("completed", "fine", 0, 1)
        assert ends(done) == [fine, end, fine]
        assert entered == [first, middle, first, middle, last]
        assert_told_once([rows[0], rows[2]])

    def test_is_told_where_handlers_are_entered_again(self, gather, run_all, caplog):
        """In the log of the process at once; and in the log of a task that it concerned, with its outcome."""

        def act(job, order):
            if order.pk == middle:
                raise ValueError("boom")

        rows = gather(3, act)
        middle = keys(rows)[1]

        with caplog.at_level("DEBUG", logger="timeline"):
            run_all(rows)

        told = [record.getMessage() for record in caplog.records if "entered again" in record.getMessage()]
        assert ["ValueError('boom')" in line for line in told] == [True, True]
        assert [str(row.pk) in line for row, line in zip(rows, told, strict=False)] == [True, True]
        outcomes = [row.log.exclude(to_state="active").order_by("seq").last() for row in rows]
        assert [entry.detail.get("reentered") for entry in outcomes] == [1, None, None]

    def test_pays_alone_for_what_the_database_refuses_at_commit(self, gather, run_all, transactional_db):
        """A foreign key that leads nowhere shows at the end only."""

        def act(job, order):
            if order.pk == middle:
                ScheduledTask.objects.filter(pk=job.task.pk).update(previous="00000000-0000-7000-8000-000000000000")
            return "fine"

        rows = gather(3, act)
        middle = keys(rows)[1]

        done = run_all(rows)

        fine = ("completed", "fine", 0, 1)
        assert ends(done) == [fine, ("retryable", None, 1, 1), fine]
        assert_told_once([rows[0], rows[2]])

    def test_pays_alone_for_a_transaction_it_broke(self, gather, run_all):
        def act(job, order):
            if order.pk == middle:
                transaction.set_rollback(True)
            return "fine"

        rows = gather(3, act, retry=Retry(max_attempts=1))
        middle = keys(rows)[1]

        done = run_all(rows)

        fine = ("completed", "fine", 0, 1)
        assert ends(done) == [fine, ("discarded", None, 1, 1), fine]
        assert_told_once([rows[0], rows[2]])


class TestOneThatIsCancelledMeanwhile:
    def test_is_undone_and_no_other(self, gather, run_all, later):
        rows = gather(3, lambda job, order: "fine")

        def cancel_the_second(active):
            if active.pk == rows[1].pk:
                cancel(task_ids=[active.pk], reason=OPERATOR, now=later, using="default")

        done = run_all(rows, watch=AtEntry(cancel_the_second))

        fine = ("completed", "fine", 0, 1)
        assert ends(done) == [fine, ("cancelled", None, 0, 1), fine]
        assert_told_once([rows[0], rows[2]])

    def test_by_another_of_them_is_not_entered_again(self, gather, run_all, emit_at, later, entered):
        """The first closes the second's order: as if they had been run one after the other."""

        def act(job, order):
            if order.pk == first:
                emit_at("order.closed", Order.objects.get(pk=second), later)

        rows = gather(3, act)
        first, second, _third = keys(rows)

        done = run_all(rows)

        assert [row.state for row in done] == ["completed", "cancelled", "completed"]
        assert (done[1].reason_code, done[1].reason) == ("exit", "closed")
        assert_told_once([rows[0], rows[2]])
