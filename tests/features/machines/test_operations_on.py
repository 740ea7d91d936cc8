"""Tasks of a state: their row is there exactly while the run is in it, made and cancelled by the move itself."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from tests.machines import is_whole
from tests.testapp.models import Order
from timeline import STAY, Machine, Then, Timeline, after, created, never, on, task
from timeline.engine.groups import run
from timeline.exceptions import DefinitionError
from timeline.features.machines.quick_moves import reconcile_moved
from timeline.features.sweep.verbs import sweep
from timeline.lifecycle import ReasonCode, State
from timeline.models import LogEntry, ScheduledTask, TimelineRun
from timeline.shortcuts import emit, emit_many, explain, move, preview, start
from timeline.signals import runs_entered
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db


class S(StrEnum):
    NEW = "new"
    SIGNING_IN = "signing_in"
    ASKED = "asked"
    OVER = "over"


class Visit(Machine):
    """Signs in, asks for a code, and signs in again with it."""

    entity = "testapp.Order"
    starts_on = created()
    initial = S.NEW
    table = {
        S.NEW: {"go": S.SIGNING_IN},
        S.SIGNING_IN: {"code.asked": S.ASKED, "signed_in": S.OVER, "look": STAY},
        S.ASKED: {"code.given": S.SIGNING_IN, "asked.again": STAY},
        S.OVER: {},
    }
    working = (S.NEW, S.SIGNING_IN)

    @task(on(S.SIGNING_IN), atomic=False)
    def sign_in(self, order): ...

    @task(on(S.ASKED, minutes=10), atomic=False)
    def remind(self, order): ...

    @task(on(S.NEW, S.ASKED))
    def greet(self, order): ...


BARE = {"sign_in": None, "remind": None, "greet": None, "timers": {S.ASKED: never}}


@pytest.fixture(autouse=True)
def _known():
    with only_timelines(Visit):
        yield


def rows(state=None):
    found = ScheduledTask.objects.order_by("created_at", "task_key")
    return [
        (row.task_name, row.occurrence, row.state, row.reason_code)
        for row in (found.filter(state=state) if state else found)
    ]


def open_rows():
    return sorted((row.task_name, row.occurrence) for row in ScheduledTask.objects.exclude(finished_at__isnull=False))


class TestAListenerThatWritesRows:
    def test_has_what_it_wrote_followed_by_the_move(self, order, now):
        """A task that is put off in the transaction of the move has a new row, which goes with the state that was left."""
        start("visit", order)

        def put_off(entries, **_said):
            for row in ScheduledTask.objects.filter(task_key="visit.greet", finished_at=None):
                move(row, at=now + timedelta(days=1), reason="later")

        runs_entered.connect(put_off)
        try:
            emit("go", order)
        finally:
            runs_entered.disconnect(put_off)

        assert [name for name, _occurrence in open_rows()] == ["sign_in"]


class TestEntering:
    def test_makes_the_rows_of_the_state_in_which_a_run_begins(self):
        Order.objects.create()

        assert rows() == [("greet", "0", "available", "")]

    def test_makes_a_row_due_at_once_or_later_and_cancels_those_of_the_state_left(self, clock):
        order = Order.objects.create()
        emit("go", order)

        assert open_rows() == [("sign_in", "1")]
        clock.set(clock.now + timedelta(hours=1))
        emit("code.asked", order)

        [remind] = ScheduledTask.objects.filter(task_key="visit.remind")
        run_ = TimelineRun.objects.get()
        assert (remind.anchor, remind.anchor_value, remind.occurrence) == ("state:asked", run_.state_at, "2")
        assert remind.scheduled_at - run_.state_at == timedelta(minutes=10)
        left = ScheduledTask.objects.get(task_key="visit.sign_in")
        assert (left.state, left.reason_code) == (State.CANCELLED, ReasonCode.STATE)
        assert left.reason == "its run is not in signing_in any more"
        assert open_rows() == [("greet", "2"), ("remind", "2")]

    def test_again_makes_a_row_of_its_own_each_time(self):
        order = Order.objects.create()
        for event in ("go", "look", "code.asked", "asked.again", "code.given"):
            emit(event, order)

        made = [(name, number) for name, number, *_end in rows() if name == "sign_in"]
        assert made == [("sign_in", "1"), ("sign_in", "2"), ("sign_in", "5")]
        assert open_rows() == [("sign_in", "5")]
        assert is_whole(TimelineRun.objects.get())

    def test_an_end_leaves_nothing_open(self):
        order = Order.objects.create()
        emit("go", order)
        emit("signed_in", order)

        assert open_rows() == []

    def test_is_undone_with_the_move(self):
        order = Order.objects.create()
        before = rows()

        with transaction.atomic():
            emit("go", order)
            transaction.set_rollback(True)

        assert rows() == before


class TestInSets:
    @pytest.mark.parametrize("own", [True, False], ids=["bound", "nothing bound"])
    def test_takes_as_many_statements_for_many_as_for_one(self, own):
        class Plain(Visit, abstract=True):
            sign_in = remind = greet = None
            timers = {S.ASKED: never}

        with only_timelines(Visit if own else type("Visit", (Plain,), {})):
            counts = []
            for many in (1, 2, 30):  # The first one of all tells the database the moves that there may be.
                orders = Order.objects.bulk_create([Order() for _ in range(many)])
                for order in orders:
                    start("visit", order)
                with CaptureQueriesContext(connection) as queries:
                    emit_many("go", orders)
                counts.append(len(queries))

        assert counts[1] == counts[2]
        assert len(open_rows()) == (33 if own else 0)

    def test_takes_so_many_statements_for_one(self):
        """The entity with its run and its rows; then all that is written: event, move, what is cancelled, what is made."""
        for order in Order.objects.bulk_create([Order(), Order()]):
            start("visit", order)
            with CaptureQueriesContext(connection) as queries:
                emit("go", order)

        # Edges are asked for until they are seen committed, which a test never is.
        asked = [
            query["sql"] for query in queries if "timeline_edge" not in query["sql"] and "SAVEPOINT" not in query["sql"]
        ]
        assert len(asked) == (2 if connection.vendor == "postgresql" else 10), asked

    def test_moves_more_than_a_portion_as_it_moves_one(self):
        orders = Order.objects.bulk_create([Order() for _ in range(250)])
        for order in orders:
            start("visit", order)
        emit("go", orders[0])
        emit_many("go", orders[1:])

        assert set(TimelineRun.objects.values_list("state", "moves")) == {("signing_in", 1)}
        columns = ("task_key", "occurrence", "state", "seq", "reason_code", "reason", "anchor", "revision")
        assert set(ScheduledTask.objects.values_list(*columns)) == {
            ("visit.greet", "0", "cancelled", 1, "state", "its run is not in new any more", "state:new", 1),
            ("visit.sign_in", "1", "available", 0, "", "", "state:signing_in", 1),
        }
        assert ScheduledTask.objects.count() == 2 * LogEntry.objects.count() == 500
        assert all(map(is_whole, TimelineRun.objects.all()[:20]))

    def test_asks_nothing_where_nothing_is_bound(self, django_assert_num_queries):
        class Bare(Machine):
            entity = "testapp.Order"
            initial = "a"
            working = ("a", "b")
            table = {"a": {"on": "b"}, "b": {"off": "c"}, "c": {}}

            @task(after(days=1))
            def look(self, order): ...

        with only_timelines(Bare):
            order = Order.objects.create()
            moved = start(Bare, order).run
            with django_assert_num_queries(0):
                reconcile_moved([moved], {}, {}, now=moved.started_at, using="default")

    def test_costs_the_same_however_often_the_run_has_been_there(self, django_assert_max_num_queries):
        order = Order.objects.create()
        emit("go", order)
        for _ in range(30):
            emit("look", order)

        with CaptureQueriesContext(connection) as queries:
            emit("look", order)

        assert len(queries) < 20
        assert ScheduledTask.objects.filter(task_key="visit.sign_in").count() == 32


class TestRunning:
    def test_moves_on_and_the_row_that_moved_it_is_completed(self, clock):
        class Going(Visit):
            name = "visit"

            @task(on(S.SIGNING_IN), atomic=False)
            def sign_in(self, order):
                return Then("code.asked")

        with only_timelines(Going):
            order = Order.objects.create()
            emit("go", order)
            run_due(clock)

            ended = ScheduledTask.objects.get(task_key="visit.sign_in")
            assert (ended.state, ended.reason_code) == (State.COMPLETED, ReasonCode.DONE)
            assert open_rows() == [("greet", "2"), ("remind", "2")]

    @pytest.mark.parametrize("atomic", [True, False])
    def test_spares_a_handler_that_leaves_its_own_state(self, clock, atomic):
        class Going(Visit):
            name = "visit"

            @task(on(S.SIGNING_IN), atomic=atomic)
            def sign_in(self, order):
                emit("code.asked", order)
                return "asked"

        with only_timelines(Going):
            order = Order.objects.create()
            emit("go", order)
            run_due(clock)

            assert rows(State.COMPLETED) == [("sign_in", "1", "completed", "done")]
            assert open_rows() == [("greet", "2"), ("remind", "2")]

    def test_does_not_run_what_belongs_to_a_state_that_was_left_by_a_process_of_old_code(self, clock):
        """It moves the run, and knows nothing of rows that are bound to states."""
        order = Order.objects.create()
        emit("go", order)
        with only_timelines(type("Visit", (Visit,), BARE)):
            emit("code.asked", order)

        [write] = run_due(clock, "visit.sign_in")

        assert (write.state, write.reason_code) == (State.CANCELLED, ReasonCode.STATE)
        assert "its run is not in signing_in any more" in explain(write)

    def test_is_mended_by_the_sweep_where_old_code_moved_the_run(self, clock):
        order = Order.objects.create()
        emit("go", order)
        with only_timelines(type("Visit", (Visit,), BARE)):
            emit("code.asked", order)

        while sweep(now=clock.now, using="default").left:
            pass

        assert open_rows() == [("greet", "2"), ("remind", "2")]


def run_due(clock, task_key=None):
    due = ScheduledTask.objects.filter(state="available")
    ids = [row.pk for row in (due.filter(task_key=task_key) if task_key else due)]
    return run(task_ids=ids, clock=lambda: clock.now, using="default")


class TestTelling:
    def test_says_what_it_waits_for_in_words(self):
        order = Order.objects.create()
        emit("go", order)
        emit("code.asked", order)

        told = explain(ScheduledTask.objects.get(task_key="visit.remind"))

        assert "10 minutes after asked is entered" in told
        assert "Its run is asked since" in told

    def test_previews_the_first_state(self):
        with only_timelines():
            order = Order.objects.create()

        found = {outlook.task_key: outlook for outlook in preview(Visit, order)}

        assert found["visit.greet"].expected_at is not None
        assert found["visit.sign_in"] == ("visit.sign_in", None, "when signing_in is entered")


class TestDeclaring:
    def test_is_for_machines_only(self):
        with pytest.raises(DefinitionError, match="is bound to the state 'a', but its class is no machine"):

            class Plain(Timeline):
                @task(on("a"))
                def work(self): ...

    @pytest.mark.parametrize(
        ("when", "problem"),
        [
            (on("nowhere"), "names the state 'nowhere', which has no row"),
            (on(S.NEW, S.OVER), "is bound to 'over', which is an end"),
            (on(), "names no state"),
            (on(S.NEW, backoff=object()), "has backoff="),
        ],
    )
    def test_refuses_what_is_no_state_to_be_in(self, when, problem):
        with pytest.raises(DefinitionError, match=problem):

            class Wrong(Visit):
                @task(when)
                def work(self, order): ...

    def test_is_followed_by_nothing(self):
        with pytest.raises(DefinitionError, match="comes again each time that its state is entered"):

            class Wrong(Visit):
                @task(after(Visit.sign_in, days=1))
                def work(self, order): ...
