"""A state of a machine gets another name, or is taken out, while runs are in it."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from tests.machines import is_whole
from tests.testapp.models import Order, Trip
from tests.tours import Now, toured
from tests.trips import Travel, shown
from timeline import BACK, Machine, Retry, never, on
from timeline.exceptions import InvalidInput
from timeline.features.machines.edges import forget_edges
from timeline.features.machines.plans import change_runs, forget_moves, plan_change
from timeline.models import Edge, RunEntry, ScheduledTask, TimelineRun
from timeline.models.facts import tries_of
from timeline.shortcuts import emit
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _now():
    forget_edges("default")
    with only_timelines(Now):
        yield
    forget_edges("default")


def change(now, size=1000, *, machine=Now, **options):
    planned = plan_change(machine.definition, actor="ada", **{"renamed": {}, **options})
    return list(change_runs(planned, size=size, clock=lambda _using: now, using="default"))


def run_of(order):
    return TimelineRun.objects.get(entity_id=str(order.pk))


class TestPlanChange:
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"renamed": {"NEW": "PACKED"}}, "rename: NEW is a state of the table. Let an event move its runs"),
            ({"renamed": {"CHECKED": "PACKD"}}, "rename: 'PACKD' is no state of tour. Give one such as PACKED"),
            ({"ended": ["NEW"], "reason": "x"}, "end: NEW is a state of the table"),
            ({"ended": ["ODD"]}, "reason: "),
            ({"renamed": {"ODD": "NEW"}, "ended": ["ODD"], "reason": "x"}, "end: ODD is renamed as well"),
        ],
    )
    def test_refuses_what_the_table_does_not_bear_out(self, now, options, said):
        with pytest.raises(InvalidInput, match=said):
            change(now, **options)


class TestRename:
    def test_moves_the_runs_and_says_so(self, now):
        order, other = toured("CHECKED", "NEW")

        assert change(now, renamed={"CHECKED": "PACKED"}) == [1]

        run = run_of(order)
        assert (run.state, run.moves, run.state_at) == ("PACKED", 2, now)
        entry = RunEntry.objects.get(run=run, seq=2)
        said = (entry.from_state, entry.to_state, entry.event, entry.actor, entry.cause_id)
        assert said == ("CHECKED", "PACKED", "renamed", "ada", None)
        assert is_whole(run)
        assert run_of(other).moves == 0
        emit("tour.sent", order)
        assert run_of(order).end_reason == "SENT"

    def test_moves_the_way_back_too(self, now):
        [order] = toured("HALTED")

        assert change(now, renamed={"CHECKED": "PACKED"}) == [1]

        run = run_of(order)
        assert (run.state, run.back) == ("HALTED", "PACKED")
        assert is_whole(run)
        emit("tour.freed", order)
        assert run_of(order).state == "PACKED"

    def test_to_an_end_ends_them(self, now):
        [order] = toured("ODD")

        assert change(now, renamed={"ODD": "SENT"}) == [1]

        run = run_of(order)
        assert (run.state, run.end_reason, str(run.end)) == ("SENT", "SENT", "exit")
        assert not ScheduledTask.objects.open().exists()

    def test_goes_on_where_it_was_stopped(self, now):
        toured(*["CHECKED"] * 5)
        planned = plan_change(Now.definition, renamed={"CHECKED": "PACKED"})
        changing = change_runs(planned, size=2, clock=lambda _using: now, using="default")
        assert next(changing) == 2
        changing.close()

        assert change(now, 2, renamed={"CHECKED": "PACKED"}) == [2, 1]
        assert change(now, renamed={"CHECKED": "PACKED"}) == []

        assert set(TimelineRun.objects.values_list("state", "moves")) == {("PACKED", 2)}

    def test_takes_as_many_statements_for_ten_as_for_a_hundred(self, now):
        def count(many):
            toured(*["CHECKED"] * many)
            forget_edges("default")
            with CaptureQueriesContext(connection) as queries:
                assert sum(change(now, renamed={"CHECKED": "PACKED"})) == many
            return len(queries)

        change(now, renamed={"CHECKED": "PACKED"})
        count(1)
        assert count(10) == count(100)

    def test_is_shown_where_the_entity_shows_its_state(self, now):
        class Older(Travel):
            name = "travel"
            table = {**Travel.table, "PLANNED": {"trip.left": "LATER"}, "LATER": {"trip.left": "UNDER_WAY"}}

        class Unchecked(Older):
            name = "travel"
            mirror = ""

        with only_timelines(Unchecked):
            trip = Trip.objects.create()
            emit("trip.booked", trip)
            emit("trip.left", trip)
        with only_timelines(Travel):
            assert change(now, machine=Travel, renamed={"LATER": "DELAYED"}) == [1]

        assert shown(trip) == "DELAYED"


class TestEnd:
    def test_ends_the_runs_with_the_reason(self, now):
        order, other = toured("ODD", "NEW")

        assert change(now, ended=["ODD"], reason="we sell no oddities") == [1]

        run = run_of(order)
        assert (run.state, run.end_reason, str(run.end), run.ended_at) == ("ODD", "we sell no oddities", "left", now)
        assert [task.reason for task in ScheduledTask.objects.filter(run=run)] == ["we sell no oddities"]
        assert run_of(other).is_open


class TestForgetMoves:
    def test_takes_away_what_the_table_lacks(self):
        order, other = toured("NEW", "NEW")
        emit("tour.checked", order)

        removed = forget_moves(Now.definition, using="default")

        assert ("NEW", "CHECKED") in removed
        assert {
            *Edge.objects.filter(timeline="tour").values_list("from_state", "to_state")
        } <= Now.definition.machine.edges
        with pytest.raises(IntegrityError), transaction.atomic():
            TimelineRun.objects.filter(pk=run_of(other).pk).update(state="CHECKED", moves=1)

    def test_takes_nothing_away_where_a_run_is_left_behind(self):
        toured("ODD")
        before = Edge.objects.count()

        with pytest.raises(InvalidInput, match="runs have come to ODD meanwhile"):
            forget_moves(Now.definition, using="default")

        assert Edge.objects.count() == before


def fetching(busy):
    """A machine that fetches, and tries again; the state in which it does so has this name."""

    class Fetching(Machine):
        name = "fetching"
        entity = "testapp.Order"
        starts_on = "fetch.wanted"
        initial = "new"
        working = (busy,)
        table = {
            "new": {"fetch.begun": busy, "fetch.dropped": "over"},
            busy: {"fetch.failed": "waiting", "fetch.done": "over"},
            "waiting": {"fetch.again": BACK, "fetch.given_up": "over"},
            "over": {},
        }
        timers = {
            "fetch.again": on("waiting", backoff=Retry(max_attempts=3), spent="fetch.given_up"),
            "new": never,
        }

    return Fetching


class TestRenamingWhereItGoesBackTo:
    def test_is_no_try(self, clock):
        order = Order.objects.create()
        with only_timelines(fetching("loading")):
            for event in ("fetch.wanted", "fetch.begun", "fetch.failed"):
                emit(event, order)
        machine = fetching("fetching")

        with only_timelines(machine):
            change(clock.now, machine=machine, renamed={"loading": "fetching"})

            run = run_of(order)
            assert (run.state, run.back, run.entries.latest("seq").event) == ("waiting", "fetching", "renamed")
            assert tries_of([(run, machine.definition)], using="default") == {run.pk: 1}
