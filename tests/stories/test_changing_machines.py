"""A table is changed while runs are open: the plan shows it, nothing is left behind, and it goes on after it was killed."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from tests.machines import is_whole
from tests.testapp.models import Order
from tests.tours import Now, toured
from timeline import Machine, Then, never, on, task
from timeline.features.machines.edges import forget_edges
from timeline.models import Edge, RunEntry, ScheduledTask, TimelineRun
from timeline.shortcuts import emit, reconcile
from timeline.testing import StoryClock, only_timelines

pytestmark = pytest.mark.django_db(transaction=True)


class Killed(BaseException):
    """As SIGKILL: nothing catches it."""


@pytest.fixture(autouse=True)
def _now():
    forget_edges("default")
    with only_timelines(Now):
        yield
    forget_edges("default")


def called(name, *options):
    """Give what a command prints, and its exit status."""
    out = StringIO()
    try:
        call_command(name, *options, stdout=out, no_color=True)
    except SystemExit as ended:
        return out.getvalue(), ended.code
    return out.getvalue(), 0


class TestTheDayAfterTheDeploy:
    def test_begins_with_the_plan(self):
        toured("NEW", "CHECKED", "ODD", "HALTED")

        said, status = called("timeline_plan")

        assert status == 2
        lines = said.splitlines()
        assert lines[0].startswith("tour: 4 open runs, ")
        assert "  NEW      1 open run" in lines
        assert "! CHECKED  1 open run  the table does not have it" in lines
        assert "! CHECKED  1 open run  would go back to it, and the table does not have it" in lines
        assert "- NEW → CHECKED  passes the database, and the table does not have it" in lines
        assert "+ NEW → PACKED  is written when a worker or poller starts, or by migrate" in lines
        [found] = json.loads(called("timeline_plan", "tour", "--json")[0])["timelines"]
        plan = found["machine"]
        assert (plan["stranded"], plan["backs"]) == ({"CHECKED": 1, "ODD": 1}, {"CHECKED": 1})

    @pytest.mark.parametrize(
        "options",
        [(), ("tour",), ("tour", "--rename", "CHECKED=PACKED"), ("tour", "--end", "ODD", "--reason", "gone")],
    )
    def test_does_nothing_while_runs_would_be_left_behind(self, options):
        toured("CHECKED", "ODD", "HALTED")
        before = list(TimelineRun.objects.order_by("pk").values()), Edge.objects.count()

        with pytest.raises(
            CommandError, match=r"the table does not have it. Say --rename OLD=NEW, or --end OLD. Nothing was"
        ):
            call_command("timeline_apply", *options)

        assert (list(TimelineRun.objects.order_by("pk").values()), Edge.objects.count()) == before

    def test_ends_with_a_database_that_is_as_the_table_says(self):
        orders = toured("CHECKED", "ODD", "HALTED", "NEW", "SENT")

        said, status = called(
            "timeline_apply", "tour", "--rename", "CHECKED=PACKED", "--end", "ODD", "--reason", "no oddities"
        )

        assert status == 0
        assert said.splitlines()[-1] == "Runs changed: 3; moves taken away: 8."
        assert called("timeline_plan")[1] == 0
        assert all(is_whole(run) for run in TimelineRun.objects.all())
        emit("tour.sent", orders[0])
        emit("tour.freed", orders[2])
        emit("tour.checked", orders[3])

    def test_is_done_in_parts(self):
        toured(*["CHECKED"] * 5)
        options = ("timeline_apply", "tour", "--rename", "CHECKED=PACKED", "--max-rows", "3")

        said, status = called(*options)
        assert status == 2
        assert "There is more to do: call it again. No move was taken away." in said
        assert TimelineRun.objects.filter(state="PACKED").count() == 3
        assert Edge.objects.filter(to_state="CHECKED").exists()

        assert called(*options)[1] == 0
        assert TimelineRun.objects.filter(state="PACKED").count() == 5
        assert not Edge.objects.filter(to_state="CHECKED").exists()

    @pytest.mark.parametrize("wanted", [1, 2])
    def test_is_killed_and_goes_on(self, wanted):
        toured(*["CHECKED"] * 4)
        seen = []

        def die(execute, sql, *given):
            if "UPDATE timeline_timelinerun" in sql or "timeline_move_runs" in sql:
                seen.append(sql)
                if len(seen) == wanted:
                    raise Killed
            return execute(sql, *given)

        options = ("timeline_apply", "tour", "--rename", "CHECKED=PACKED", "--batch", "2")
        with connection.execute_wrapper(die), pytest.raises(Killed):
            call_command(*options)
        assert TimelineRun.objects.filter(state="PACKED").count() == 2 * (wanted - 1)

        assert called(*options)[1] == 0

        assert set(TimelineRun.objects.values_list("state", "moves")) == {("PACKED", 2)}
        assert RunEntry.objects.filter(event="renamed", actor="timeline_apply").count() == 4

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (("--rename", "CHECKED=PACKED"), "Name the machine"),
            (("tour", "--rename", "CHECKED"), "give OLD=NEW, each OLD once"),
            (("tour", "--rename", "A=NEW", "--rename", "A=SENT"), "give OLD=NEW, each OLD once"),
            (("tour", "--max-rows", "0"), "give a whole number, 1 at least"),
            (("tour", "--batch", "0"), "batch_size"),
            (("turo",), "turo"),
        ],
    )
    def test_is_told_what_it_says_wrongly(self, options, said):
        with pytest.raises(CommandError, match=said):
            call_command("timeline_apply", *options)

    def test_has_nothing_to_do_without_machines(self):
        with only_timelines():
            assert called("timeline_plan") == ("There is no timeline.\n", 0)
            assert called("timeline_apply") == ("Tasks changed: 0.\n", 0)
        with pytest.raises(CommandError):
            call_command("timeline_plan", "turo")


class Before(Machine):
    """As processes of the older code have it."""

    name = "handing_over"
    entity = "testapp.Order"
    starts_on = "handing_over.begun"
    initial = "new"
    table = {
        "new": {"given.away": "away"},
        "away": {"away.late": "over", "came.back": "new", "was.called": "over"},
        "over": {},
    }
    timers = {"away.late": on("away", hours=1), "new": never}

    @task(on("away", minutes=30), atomic=False)
    def call(self, order):
        return Then("was.called") if order.note == "call" else None


class Since(Machine):
    """The state ``away`` is called ``lent``, and has neither that task nor another timer of the old name."""

    name = "handing_over"
    entity = "testapp.Order"
    starts_on = "handing_over.begun"
    initial = "new"
    table = {"new": {"given.away": "lent"}, "lent": {"away.late": "over", "came.back": "new"}, "over": {}}
    timers = {"away.late": on("lent", hours=1), "new": never}


class TestADeployThatRenamesAState:
    """Processes of both codes are at work, and perhaps it is taken back."""

    @pytest.fixture
    def clock(self, now):
        with StoryClock(now) as clock:
            yield clock

    @pytest.fixture
    def order(self, clock):
        with only_timelines(Before):
            order = Order.objects.create(note="call")
            emit("handing_over.begun", order)
            emit("given.away", order)
        return order

    def rows(self):
        rows = ScheduledTask.objects.order_by("task_key", "revision")
        return [(row.task_key.partition(".")[2], row.state, row.reason_code) for row in rows]

    def test_leaves_the_rows_of_a_run_that_is_there(self, order, clock):
        with only_timelines(Since):
            reconcile(order)

        assert self.rows() == [("call", "scheduled", ""), ("timer:away.late", "scheduled", "")]
        with only_timelines(Before):
            clock.advance(minutes=30)
        assert TimelineRun.objects.get().state == "over"

    def test_lets_what_is_due_rest_until_the_older_code_has_it(self, order, clock):
        order.note = ""
        order.save()
        with only_timelines(Before):
            clock.advance(minutes=30)
        with only_timelines(Since):
            clock.advance(minutes=31)
        [_call, timer] = ScheduledTask.objects.order_by("task_key")
        assert (timer.state, timer.reason_code, timer.failures) == ("retryable", "definition", 0)
        assert timer.reason == "its run is in away, which the table of this code does not have"

        with only_timelines(Before):
            clock.advance(minutes=5)

        run = TimelineRun.objects.get()
        assert (run.state, run.is_open) == ("over", False)

    def test_calls_them_off_once_the_runs_are_renamed(self, order, clock):
        with only_timelines(Since):
            called("timeline_apply", "handing_over", "--rename", "away=lent")

            assert self.rows() == [
                ("call", "cancelled", "definition"),
                ("timer:away.late", "cancelled", "state"),
                ("timer:away.late", "scheduled", ""),
            ]
            clock.advance(hours=1)
        assert TimelineRun.objects.get().state == "over"
