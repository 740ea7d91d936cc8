"""Execute in one transaction with a savepoint each: who fails pays alone, and what undoes all has each run in its own."""

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from tests.databases import VENDOR
from tests.engine.sharing import RAISED, assert_told_once, ends, keys, telling_once
from tests.engine.watching import AtEntry
from tests.testapp.models import Effect, Order
from timeline import Retry
from timeline.engine.groups import Watch
from timeline.lifecycle import Reason
from timeline.models import Event, LogEntry, ScheduledTask
from timeline.operations.cancel import cancel

pytestmark = pytest.mark.usefixtures("patient")

OPERATOR = Reason.operator("asked for", "ada")
FINE = ("completed", "fine", 0, 1)


@pytest.fixture
def entered():
    """The keys of the orders of each entry."""
    return []


@pytest.fixture
def gather(crowd, entered):
    """Have so many due tasks, declared with nothing else, each of which tells its order once: ``gather(3, act, …)``."""

    def declare(count, act=lambda job, order: "fine", **options):
        return crowd(count, telling_once(entered, act), **options)

    return declare


def completed_so_far(job, order):
    return ScheduledTask.objects.filter(state="completed").count()


class TestATransactionOfMany:
    def test_has_all_outcomes_at_its_end(self, gather, run_all, entered, transactional_db):
        """On SQLite, with its one writer, each has one of its own."""
        rows = gather(5, completed_so_far)

        done = run_all(rows)

        before = [0] * 5 if VENDOR == "postgresql" else range(5)
        assert ends(done) == [("completed", number, 0, 1) for number in before]
        assert entered == keys(rows)
        assert_told_once(rows)
        assert ScheduledTask.objects.filter(task_key="crowd.follow").count() == 5

    def test_is_none_of_those_that_want_one_of_their_own(self, gather, run_all, entered, transactional_db):
        rows = gather(5, completed_so_far, atomic="own")

        done = run_all(rows)

        assert ends(done) == [("completed", number, 0, 1) for number in range(5)]
        assert entered == keys(rows)
        assert_told_once(rows)

    @pytest.mark.only_postgresql
    def test_is_none_where_nobody_could_break_it_off(self, gather, run_all, transactional_db):
        """Where the server does not tell which transactions there are, one that hangs would hold up the others."""
        connection.cursor().execute("SET track_activities = off")
        try:
            done = run_all(gather(3, completed_so_far))
        finally:
            connection.cursor().execute("RESET track_activities")

        assert ends(done) == [("completed", number, 0, 1) for number in range(3)]

    @pytest.mark.only_postgresql
    def test_is_there_where_the_driver_prepares_each_statement(self, gather, run_all, transactional_db):
        connection.ensure_connection()
        connection.connection.prepare_threshold = 0
        try:
            done = run_all(gather(3, completed_so_far))
        finally:
            connection.connection.prepare_threshold = None

        assert ends(done) == [("completed", 0, 0, 1)] * 3

    @pytest.mark.only_postgresql
    def test_makes_as_many_statements_for_50_as_for_10_but_for_the_handlers(self, crowd, run_all, statements_of):
        asked = []
        for count in (10, 50):
            rows = crowd(count)
            told = statements_of(lambda rows=rows: run_all(rows))
            assert sum("RELEASE" in sql and "SAVEPOINT" in sql for sql in told) >= count
            asked.append(len(told) - count)

        assert asked[0] == asked[1]

    @pytest.mark.only_postgresql
    def test_is_of_no_more_than_the_database_keeps_at_hand(self, gather, run_all, monkeypatch):
        monkeypatch.setattr("timeline.engine.execute_atomic.MAX_TOGETHER", 2)
        rows = gather(5, completed_so_far)

        done = run_all(rows)

        assert [row.result for row in done] == [0, 0, 2, 2, 4]

    @pytest.mark.only_postgresql
    def test_lasts_no_longer_than_a_group(self, gather, run_all, hasty):
        rows = gather(3, completed_so_far)

        done = run_all(rows)

        assert [row.result for row in done] == [0, 1, 2]

    def test_calls_what_waits_for_its_commit(self, gather, run_all, transactional_db):
        """But what one registered whose savepoint is undone."""
        called = []

        def act(job, order):
            transaction.on_commit(lambda: called.append((order.pk, connection.in_atomic_block)))
            if order.pk == middle:
                raise ValueError("boom")

        rows = gather(3, act)
        first, middle, last = keys(rows)

        run_all(rows)

        assert called == [(first, False), (last, False)]

    def test_ends_where_the_worker_stops(self, gather, run_all, entered):
        class Stop(Watch):
            def stopping(self):
                return len(entered) == 2

        rows = gather(4)

        done = run_all(rows, watch=Stop())

        assert [row.state for row in done] == ["completed", "completed", "retryable", "retryable"]
        assert {row.reason_code for row in done[2:]} == {"released"}
        assert_told_once(rows[:2])

    def test_is_kept_of_those_before_one_that_ends_the_thread(self, gather, run_all, entered, transactional_db):
        def act(job, order):
            if order.pk == middle:
                raise SystemExit
            return "fine"

        rows = gather(3, act)
        first, middle, _last = keys(rows)

        with pytest.raises(SystemExit):
            run_all(rows)

        there = list(ScheduledTask.objects.filter(task_key="crowd.work").order_by("pk"))
        assert [(row.state, row.reason_code) for row in there] == [
            ("completed", "done"),
            ("retryable", "error"),
            ("retryable", "released"),
        ]
        assert entered == [first, middle]
        assert_told_once(rows[:1])


class TestOneThatRaises:
    @pytest.mark.parametrize(("error", "end"), RAISED)
    def test_is_undone_and_no_other_is_entered_again(self, gather, run_all, entered, error, end):
        def act(job, order):
            if order.pk == middle:
                raise error
            return "fine"

        rows = gather(3, act)
        _first, middle, _last = keys(rows)

        done = run_all(rows)

        assert ends(done) == [FINE, end, FINE]
        assert entered == keys(rows)
        assert_told_once([rows[0], rows[2]])

    def test_costs_its_neighbours_nothing_however_often(self, gather, run_all, entered):
        def act(job, order):
            if order.pk % 3 == 0:
                raise ValueError("boom")
            return "fine"

        rows = gather(30, act, retry=Retry(max_attempts=1))

        done = run_all(rows)

        broken = ("discarded", None, 1, 1)
        assert ends(done) == [broken if key % 3 == 0 else FINE for key in keys(rows)]
        assert entered == keys(rows)
        assert_told_once([row for row in rows if int(row.entity_id) % 3])

    @pytest.mark.parametrize("first", [0, 1, 2])
    def test_wherever_it_stands(self, gather, run_all, entered, first):
        """Also where it is the first, or the last, or all are."""

        def act(job, order):
            if order.pk >= broken:
                raise ValueError("boom")
            return "fine"

        rows = gather(3, act)
        broken = keys(rows)[first]

        done = run_all(rows)

        assert [row.state for row in done] == ["completed"] * first + ["retryable"] * (3 - first)
        assert entered == keys(rows)
        assert_told_once(rows[:first])

    def test_has_its_error_in_its_own_log(self, gather, run_all):
        def act(job, order):
            if order.pk == middle:
                raise ValueError("boom")

        rows = gather(3, act)
        middle = keys(rows)[1]

        done = run_all(rows)

        assert [("boom" in row.error) for row in done] == [False, True, False]
        assert LogEntry.objects.filter(reason="boom").get().task == done[1]


def catch_an_error(job, order):
    """In PostgreSQL nothing goes on in this transaction, and nothing says so."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT nothing FROM nowhere")
    except DatabaseError:
        pass


def catch_an_error_of_a_block_without_a_savepoint(job, order):
    try:
        with transaction.atomic(savepoint=False):
            Effect.objects.create(pk=Effect.objects.first().pk)
    except IntegrityError:
        pass


def ask_for_a_rollback(job, order):
    transaction.set_rollback(True)


def ask_for_durability(job, order):
    with transaction.atomic(durable=True):
        pass


def close_the_connection(job, order):
    connection.close()


class TestOneThatBreaksItsTransaction:
    """It fails, as it does alone: its writes are not there, so it must not be taken for completed."""

    @pytest.mark.parametrize(
        "broken",
        [
            pytest.param(catch_an_error, marks=pytest.mark.only_postgresql),
            catch_an_error_of_a_block_without_a_savepoint,
            ask_for_a_rollback,
            ask_for_durability,
            close_the_connection,
        ],
    )
    def test_fails_and_no_other_does(self, gather, run_all, entered, transactional_db, broken):
        def act(job, order):
            if order.pk == middle:
                broken(job, order)
            return "fine"

        rows = gather(3, act, retry=Retry(max_attempts=9))
        _first, middle, _last = keys(rows)

        done = run_all(rows)

        assert [row.state for row in done] == ["completed", "retryable", "completed"]
        assert [row.attempt for row in done] == [1, 1, 1]
        assert max(entered.count(key) for key in keys(rows)) <= 2
        assert_told_once([rows[0], rows[2]])

    def test_is_not_one_that_catches_an_error_in_a_block_of_its_own(self, gather, run_all, entered):
        def act(job, order):
            try:
                with transaction.atomic():
                    Effect.objects.create(pk=Effect.objects.first().pk)
            except IntegrityError:
                return "fine"

        rows = gather(3, act)

        assert ends(run_all(rows)) == [FINE] * 3
        assert entered == keys(rows)
        assert_told_once(rows)

    def test_pays_alone_for_what_the_database_refuses_at_commit(self, gather, run_all, transactional_db):
        """A foreign key that leads nowhere shows at the end only."""

        def act(job, order):
            if order.pk == middle:
                ScheduledTask.objects.filter(pk=job.task.pk).update(previous="00000000-0000-7000-8000-000000000000")
            return "fine"

        rows = gather(3, act)
        middle = keys(rows)[1]

        done = run_all(rows)

        assert ends(done) == [FINE, ("retryable", None, 1, 1), FINE]
        assert_told_once([rows[0], rows[2]])


class TestOneThatIsCalledOff:
    def test_meanwhile_is_undone_and_no_other(self, gather, run_all, later):
        rows = gather(3)

        def cancel_the_second(active):
            if active.pk == rows[1].pk:
                cancel(task_ids=[active.pk], reason=OPERATOR, now=later, using="default")

        done = run_all(rows, watch=AtEntry(cancel_the_second))

        assert ends(done) == [FINE, ("cancelled", None, 0, 1), FINE]
        assert_told_once([rows[0], rows[2]])

    def test_meanwhile_and_raises_costs_its_neighbours_nothing(self, gather, run_all, later, entered):
        """Nothing of it is left to be undone."""

        def act(job, order):
            if order.pk == middle:
                raise ValueError("boom")
            return "fine"

        rows = gather(3, act)
        middle = keys(rows)[1]

        def cancel_the_second(active):
            if active.pk == rows[1].pk:
                cancel(task_ids=[active.pk], reason=OPERATOR, now=later, using="default")

        done = run_all(rows, watch=AtEntry(cancel_the_second))

        assert ends(done) == [FINE, ("cancelled", None, 0, 1), FINE]
        assert entered == keys(rows)

    @pytest.mark.parametrize("how", ["exit", "cancel"])
    def test_by_one_before_it_is_not_entered(self, gather, run_all, emit_at, later, entered, how):
        """In the same transaction, where nobody else knows it yet. Nothing is undone for it."""

        def act(job, order):
            if order.pk == first and how == "exit":
                emit_at("order.closed", Order.objects.get(pk=second), later)
            elif order.pk == first:
                cancel(task_ids=[rows[1].pk], reason=OPERATOR, now=later, using="default")
            return "fine"

        rows = gather(3, act)
        first, second, third = keys(rows)

        done = run_all(rows)

        assert [row.state for row in done] == ["completed", "cancelled", "completed"]
        assert done[1].reason_code == ("exit" if how == "exit" else "operator")
        # On SQLite each commits by itself, so that the second is entered and then undone.
        assert entered == ([first, third] if VENDOR == "postgresql" else [first, second, third])
        assert_told_once([rows[0], rows[2]])

    def test_by_one_before_it_that_fails_is_entered(self, gather, run_all, emit_at, later, entered):
        def act(job, order):
            if order.pk == first:
                emit_at("order.closed", Order.objects.get(pk=second), later)
                raise ValueError("boom")
            return "fine"

        rows = gather(3, act)
        first, second, _third = keys(rows)

        done = run_all(rows)

        assert ends(done) == [("retryable", None, 1, 1), FINE, FINE]
        assert entered == keys(rows)
        assert not Event.objects.exists()

    def test_by_one_after_it_has_completed(self, gather, run_all, emit_at, later):
        """As if they had been run one after the other: the exit comes too late for the first."""

        def act(job, order):
            if order.pk == third:
                emit_at("order.closed", Order.objects.get(pk=first), later)
            return "fine"

        rows = gather(3, act)
        first, _second, third = keys(rows)

        done = run_all(rows)

        assert ends(done) == [FINE] * 3
        assert_told_once(rows)
        follow = ScheduledTask.objects.get(task_key="crowd.follow", entity_id=str(first))
        assert (follow.state, follow.reason) == ("cancelled", "closed")
