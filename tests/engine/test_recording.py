"""Record: what becomes of a group's outcomes when one of them cannot be written with the others."""

import pytest
from django.db import connection

from tests.databases import VENDOR
from tests.engine.watching import AtEntry
from tests.testapp.models import Effect, Order
from tests.triggers import refusing
from timeline import Retry
from timeline.lifecycle import Reason
from timeline.models import LogEntry, ScheduledTask, TimelineRun
from timeline.operations.cancel import cancel

pytestmark = pytest.mark.django_db(transaction=True)

OPERATOR = Reason.operator("asked for", "ada")


def answering(result, *, of):
    """A handler that leaves an effect, and gives this result for the task that stands there among the three."""

    def handler(job, order):
        Effect.objects.create(name=str(order.pk))
        first = Order.objects.order_by("pk").values_list("pk", flat=True)[0]
        return result if order.pk - first == of else "fine"

    return handler


def ends(rows):
    return [(row.state, row.failures, row.attempt) for row in rows]


REFUSED = "CAST(NEW.result AS text) = '\"refused\"'"
COMPLETED, FAILED = ("completed", 0, 1), ("retryable", 1, 1)


@pytest.mark.parametrize("at_commit", [False, *([True] if VENDOR == "postgresql" else [])])
class TestAnOutcomeThatTheDatabaseRefuses:
    @pytest.mark.parametrize("place", [0, 1, 2])
    def test_is_a_failed_attempt_of_that_task_alone(self, crowd, run_all, patient, at_commit, place):
        rows = crowd(3, answering("refused", of=place), atomic=False)

        with refusing(REFUSED, at_commit=at_commit):
            done = run_all(rows)

        expected = [COMPLETED] * 3
        expected[place] = FAILED
        assert ends(done) == expected
        assert done[place].reason.startswith("the trigger says no")
        assert [row.result for row in done if row.state == "completed"] == ["fine", "fine"]
        assert ScheduledTask.objects.filter(task_key="crowd.follow").count() == 2

    def test_leaves_no_trace_in_the_log_but_the_failure(self, crowd, run_all, patient, at_commit):
        rows = crowd(3, answering("refused", of=1), atomic=False)

        with refusing(REFUSED, at_commit=at_commit):
            run_all(rows)

        moves = LogEntry.objects.filter(task=rows[1]).order_by("seq").values_list("seq", "to_state")
        assert list(moves) == [(1, "available"), (2, "active"), (3, "retryable")]

    def test_undoes_what_an_atomic_handler_wrote(self, crowd, run_all, patient, at_commit):
        rows = crowd(3, answering("refused", of=1))

        with refusing(REFUSED, at_commit=at_commit):
            done = run_all(rows)

        assert ends(done) == [COMPLETED, FAILED, COMPLETED]
        assert Effect.objects.count() == 2

    def test_ends_a_task_whose_budget_it_was(self, crowd, run_all, patient, at_commit):
        rows = crowd(3, answering("refused", of=1), atomic=False, retry=Retry(max_attempts=1))

        with refusing(REFUSED, at_commit=at_commit):
            done = run_all(rows)

        assert [row.state for row in done] == ["completed", "discarded", "completed"]
        assert TimelineRun.objects.filter(end_reason="finished").count() == 1


class TestAnOutcomeThatCannotBeWrittenAtAll:
    def test_is_left_to_its_lease_and_its_neighbours_are_not(self, crowd, run_all, patient, caplog):
        """Neither the result nor the failure: as if the worker had died there. The log of the site says so."""
        rows = crowd(3, answering("refused", of=0), atomic=False)

        with refusing(f"NEW.state <> 'active' AND NEW.entity_id = '{rows[0].entity_id}'"):
            done = run_all(rows)

        assert ends(done) == [("active", 0, 1), COMPLETED, COMPLETED]
        assert f"The outcome of task {rows[0].pk} is not recorded" in caplog.text


class TestAnAttemptThatIsNoLongerOurs:
    def test_is_left_and_its_neighbours_are_recorded(self, crowd, run_all, later, patient, caplog):
        rows = crowd(3, answering("fine", of=0), atomic=False)

        def somebody_else(active):
            if active.pk == rows[1].pk:
                cancel(task_ids=[active.pk], reason=OPERATOR, now=later, using="default")

        done = run_all(rows, watch=AtEntry(somebody_else))

        assert [(row.state, row.result) for row in done] == [
            ("completed", "fine"),
            ("cancelled", None),
            ("completed", "fine"),
        ]
        assert str(rows[1].pk) in caplog.text
        assert ScheduledTask.objects.filter(task_key="crowd.follow").count() == 2


@pytest.mark.only_postgresql  # The connection is one that can be lost.
class TestALostConnection:
    def lose(self):
        """End our own connection, unseen, as a network does."""
        connection.ensure_connection()
        connection.connection.close()

    @pytest.mark.parametrize("count", [1, 3])
    def test_after_the_handlers_costs_no_outcome(self, crowd, run_all, patient, count):
        """What plain handlers did is done; so their outcomes are written over a new connection."""
        rows = crowd(count, lambda job, order: self.lose(), atomic=False)

        done = run_all(rows)

        assert ends(done) == [COMPLETED] * count

    def test_in_an_atomic_handler_is_nobodys_fault(self, crowd, run_all, patient):
        rows = crowd(2, lambda job, order: self.lose())

        done = run_all(rows)

        assert ends(done) == [("retryable", 0, 1)] * 2
