"""Tell: who listens hears of each ending once, after the commit that made it true; who does not listen pays nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection, transaction

from tests.testapp.models import Order
from timeline import Cancel, Discard, Retry, RetryAfter
from timeline.dispatch.rescue import rescue
from timeline.engine.groups import Watch
from timeline.lifecycle import Reason
from timeline.models import ScheduledTask
from timeline.operations.cancel import cancel, cancel_all
from timeline.signals import attempts_failed, attempts_failing, tasks_ended

pytestmark = pytest.mark.django_db(transaction=True)

OPERATOR = Reason.operator("no longer wanted", "ada")


class Heard:
    """What was announced: calls, each with its endings, and whether that was outside of any transaction."""

    def __init__(self):
        self.calls = []
        self.inside = []

    def __call__(self, *, using, endings, **_signal):
        self.calls.append(endings)
        self.inside.append(connection.in_atomic_block)

    @property
    def endings(self):
        return [ending for call in self.calls for ending in call]

    @property
    def told(self):
        return [(ending.task_key, ending.state, ending.reason_code, ending.attempt) for ending in self.endings]


@pytest.fixture
def ended():
    """Listen to how tasks end."""
    heard = Heard()
    tasks_ended.connect(heard)
    yield heard
    tasks_ended.disconnect(heard)


@pytest.fixture
def failed():
    """Listen to which attempts fail."""
    heard = Heard()
    attempts_failed.connect(heard)
    yield heard
    attempts_failed.disconnect(heard)


@pytest.fixture
def failing():
    """Listen to which attempts fail, before the commit."""
    heard = Heard()
    attempts_failing.connect(heard)
    yield heard
    attempts_failing.disconnect(heard)


def raising(error):
    """A handler that raises."""

    def handler(job, order):
        raise error

    return handler


class TestTasksEnded:
    @pytest.mark.parametrize("atomic", [True, False])
    def test_tells_of_a_task_that_has_completed(self, work, run_at, later, ended, failed, atomic):
        row = work(atomic=atomic)

        run_at(row, later)

        assert ended.told == [("job.work", "completed", "done", 1)]
        assert (ended.inside, failed.calls) == ([False], [])
        [ending] = ended.endings
        assert (ending.task_id, ending.run_id, ending.error) == (row.pk, row.run_id, None)
        assert (ending.entity_label, ending.entity_id) == row.entity_ref

    def test_tells_of_one_that_is_discarded_with_its_error(self, work, run_at, later, ended, failed):
        error = Discard("no address")
        row = work(raising(error))

        run_at(row, later)

        assert ended.told == [("job.work", "discarded", "handler", 1)]
        assert ended.endings[0].error is error
        assert failed.calls == []

    @pytest.mark.parametrize(
        ("handler", "options", "code"),
        [
            (raising(Cancel("moved out")), {}, "handler"),
            (lambda job, order: None, {"only_if": lambda order: False}, "guard"),
        ],
        ids=["handler", "guard"],
    )
    def test_tells_of_one_that_cancels_itself(self, work, run_at, later, ended, handler, options, code):
        row = work(handler, **options)

        run_at(row, later)

        assert ended.told == [("job.work", "cancelled", code, 1)]

    def test_tells_of_what_the_last_look_refuses(self, work, run_at, later, order, ended):
        row = work()
        Order.objects.create()  # Where there is no row at all, none is taken for deleted.
        Order.objects.filter(pk=order.pk)._raw_delete("default")

        run_at(row, later)

        assert ended.told == [("job.work", "cancelled", "entity_gone", 1)]

    def test_tells_of_what_an_operator_cancels(self, work, now, ended):
        row = work()

        cancel(task_ids=[row.pk], reason=OPERATOR, now=now, using="default")

        assert ended.told == [("job.work", "cancelled", "operator", 0)]

    def test_tells_of_what_is_called_off_with_an_entity(self, work, order, now, ended):
        row = work()

        cancel_all(ref=row.entity_ref, reason=OPERATOR, now=now, using="default")

        assert ended.told == [("job.work", "cancelled", "operator", 0)]

    def test_tells_of_what_an_exit_ends(self, work, order, now, emit_at, ended):
        work()

        emit_at("order.closed", order, now)

        assert ended.told == [("job.work", "cancelled", "exit", 0)]

    def test_tells_of_what_loses_its_last_worker(self, make_task, settings, let_lease_run_out, now, ended, failed):
        settings.TIMELINE = {"MAX_LOST": 1}
        row = make_task(state="active", attempt=2)
        let_lease_run_out(row)

        rescue(now=now, using="default")

        assert ended.told == [("trial.remind", "discarded", "worker_lost", 2)]
        assert failed.calls == []

    def test_tells_of_a_group_in_one_call(self, crowd, run_all, patient, ended):
        rows = crowd(2, lambda job, order: None, atomic="shared")

        run_all(rows)

        assert [len(call) for call in ended.calls] == [2]

    def test_tells_nothing_of_what_is_rolled_back(self, work, now, ended):
        row = work()

        with transaction.atomic():
            cancel(task_ids=[row.pk], reason=OPERATOR, now=now, using="default")
            assert ended.calls == []
            transaction.set_rollback(True)

        assert ended.calls == []

    def test_survives_a_receiver_that_raises(self, work, run_at, later, ended, caplog):
        def broken(**_signal):
            raise RuntimeError("receiver is broken")

        tasks_ended.connect(broken)
        try:
            done = run_at(work(), later)
        finally:
            tasks_ended.disconnect(broken)

        assert done.state == "completed"
        assert ScheduledTask.objects.get(pk=done.pk).state == "completed"
        assert "receiver is broken" in caplog.text
        assert len(ended.calls) == 1

    def test_costs_no_statement_whether_somebody_listens_or_not(self, crowd, now, emit_at, statements_of):
        """An exit reads no more of a row than it needs, unless somebody wants to know: in the statement that ends them."""
        heard, statements = Heard(), []
        first, second = [row.entity_ref for row in crowd(2)]
        statements.append(statements_of(lambda: emit_at("order.closed", first, now)))
        tasks_ended.connect(heard)
        try:
            statements.append(statements_of(lambda: emit_at("order.closed", second, now)))
        finally:
            tasks_ended.disconnect(heard)

        assert [sql.split()[0] for sql in statements[0]] == [sql.split()[0] for sql in statements[1]]
        assert heard.told == [("crowd.work", "cancelled", "exit", 0)]


class TestAttemptsFailing:
    @pytest.mark.parametrize("retry", [Retry(max_attempts=2), Retry(max_attempts=1)])
    def test_tells_of_each_at_once_also_of_the_last(self, work, run_at, later, failing, retry):
        error = ValueError("no such address")

        run_at(work(raising(error), retry=retry), later)

        assert [(ending.reason_code, ending.error) for ending in failing.endings] == [("error", error)]

    def test_tells_nothing_of_one_that_is_well_or_cancels_itself(self, work, run_at, later, failing):
        run_at(work(), later)
        run_at(work(raising(Cancel("not wanted"))), later)

        assert failing.calls == []

    def test_tells_before_the_commit_where_something_follows(self, work, run_at, later, failing):
        run_at(work(raising(Discard("no such address"))), later)

        assert failing.inside == [True]


class TestAttemptsFailed:
    def test_tells_of_one_that_is_tried_again(self, work, run_at, later, ended, failed):
        error = ValueError("no such address")

        run_at(work(raising(error)), later)

        assert failed.told == [("job.work", "retryable", "error", 1)]
        assert failed.endings[0].error is error
        assert (failed.inside, ended.calls) == ([False], [])

    def test_tells_of_one_that_asked_to_be_entered_later(self, work, run_at, later, failed):
        run_at(work(raising(RetryAfter(timedelta(hours=1)))), later)

        assert failed.told == [("job.work", "retryable", "retry_after", 1)]

    def test_tells_of_one_that_is_lost_with_its_worker(self, make_task, let_lease_run_out, now, failed):
        row = make_task(state="active", attempt=1)
        let_lease_run_out(row)

        rescue(now=now, using="default")

        assert failed.told == [("trial.remind", "retryable", "worker_lost", 1)]

    def test_tells_nothing_of_what_a_stopping_worker_gives_back(self, crowd, run_all, ended, failed):
        entered = []

        class Stop(Watch):
            def stopping(self):
                return bool(entered)

        rows = crowd(2, lambda job, order: entered.append(order), atomic=False)

        done = run_all(rows, watch=Stop())

        assert [row.reason_code for row in done] == ["done", "released"]
        assert (len(ended.endings), failed.calls) == (1, [])
