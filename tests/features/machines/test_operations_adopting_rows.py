"""Rows that were there before a machine come under it, each in the state that a column says."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.machines import is_whole
from tests.testapp.models import Leg, Trip
from tests.trips import Travel, shown
from timeline import BACK, Machine, Timeline, after, after_run, task
from timeline.exceptions import InvalidInput, UnknownTimeline
from timeline.features.machines.adopt_rows import ValueFound, adopt_rows, check_survey, plan_adoption, survey
from timeline.models import RunEntry, ScheduledTask, TimelineRun
from timeline.shortcuts import emit, leave, start
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db

MEANING = {"open": "PLANNED", "on the way": "UNDER_WAY", "done": "ARRIVED"}


class Detour(Machine):
    """Goes back to where it was, and has a task."""

    entity = "testapp.Trip"
    initial = "ahead"
    table = {
        "ahead": {"road.shut": "aside", "road.end": "over"},
        "aside": {"road.open": BACK},
        "over": {},
    }

    @task(after(days=2))
    def look(self, trip): ...


class Farewell(Timeline):
    entity = "testapp.Trip"
    starts_on = after_run(Travel, ended="exit")

    @task(after(days=1))
    def thank(self, trip): ...


class Numbered(Travel):
    key = "number"
    mirror = ""


class Alone(Machine):
    initial = "off"
    table = {"off": {"light.on": "on"}, "on": {}}


@pytest.fixture(autouse=True)
def _known():
    with only_timelines(Travel, Detour, Farewell, Alone):
        yield


def made(*statuses):
    return [Trip.objects.create(status=status) for status in statuses]


def planned(machine="travel", **options):
    return plan_adoption(**{"machine": machine, "column": "status", "states": MEANING, "using": "default", **options})


def adopt(now, size=1000, **options):
    *_before, done = [
        (0, 0),
        *adopt_rows(planned(**options), size=size, actor="ada", clock=lambda _using: now, using="default"),
    ]
    return tuple(done)


def states():
    runs = TimelineRun.objects.filter(timeline="travel")
    return {int(key): state for key, state in runs.values_list("entity_id", "state")}


class TestSurvey:
    def test_counts_the_rows_by_their_values(self):
        made("open", "open", "done", "lost")

        found = survey(planned(states={**MEANING, "x": "DELAYED"}))

        assert found == [
            ValueFound("lost", None, 1, False),
            ValueFound("open", "PLANNED", 2, False),
            ValueFound("done", "ARRIVED", 1, True),
        ]
        assert not TimelineRun.objects.exists()

    def test_takes_a_state_to_mean_itself(self):
        made("DELAYED", Leg.PLANNED)

        assert [known.state for known in survey(planned(states={}))] == ["PLANNED", "DELAYED"]

    @pytest.mark.parametrize(("filters", "counted"), [({"note": "x"}, 1), ({"note__in": ["x", "y"]}, 2), ({}, 3)])
    def test_counts_only_what_is_asked_for(self, filters, counted):
        for note in "xyz":
            Trip.objects.create(status="open", note=note)

        assert [known.rows for known in survey(planned(filters=filters))] == [counted]


class TestPlanAdoption:
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"column": "statuz"}, "from: 'statuz' is no field of testapp.Trip. Name one of id, note, status"),
            ({"states": {"open": "PLANED"}}, "map: 'PLANED' is no state of travel. Give one such as PLANNED"),
            ({"filters": {"colour": "red"}}, "filter: does not fit testapp.Trip"),
            ({"filters": {"id": "red"}}, "filter: does not fit testapp.Trip"),
            ({"back": {"PLANNED": "DELAYED"}}, "back: PLANNED has no BACK that leads to DELAYED"),
            (
                {"machine": "detour", "states": {}, "back": {"aside": "over"}},
                "back: aside has no BACK that leads to over",
            ),
            ({"machine": "farewell"}, "machine: 'farewell' is a timeline without a table"),
            ({"machine": "numbered"}, "machine: has a key"),
            ({"machine": "alone"}, "machine: is about no entity"),
        ],
    )
    def test_refuses_what_does_not_fit(self, options, said):
        with only_timelines(Travel, Detour, Farewell, Numbered, Alone), pytest.raises(InvalidInput, match=said):
            planned(**options)

    def test_needs_a_machine(self):
        with pytest.raises(UnknownTimeline):
            planned(machine="travle")


class TestCheckSurvey:
    def test_names_all_values_that_mean_nothing(self):
        made("lost", "open", "gone")

        adoption = planned()
        with pytest.raises(
            InvalidInput, match=r"map: nobody has said .* 'gone', 'lost'. Map each to a state, or skip it"
        ):
            check_survey(adoption, survey(adoption))

        adoption = planned(skipped=frozenset({"lost", "gone"}))
        check_survey(adoption, survey(adoption))

    def test_asks_where_back_leads(self):
        made("aside")

        adoption = planned("detour", states={})
        with pytest.raises(
            InvalidInput, match=r"back: aside has a BACK, and nobody has said to where. Say it: aside=…"
        ):
            check_survey(adoption, survey(adoption))


class TestAdoptRows:
    def test_begins_runs_in_the_states_that_the_column_says(self, now):
        first, second, _ended, _new = made("open", "on the way", "done", "new")

        assert adopt(now, skipped=frozenset({"new"})) == (2, 2)

        assert states() == {first.pk: "PLANNED", second.pk: "UNDER_WAY"}
        run = TimelineRun.objects.get(entity_id=second.pk)
        assert (run.state_at, run.started_at, run.moves, run.back, run.is_open) == (now, now, 0, "", True)
        entry = RunEntry.objects.get(run=run)
        said = (entry.seq, entry.from_state, entry.to_state, entry.event, entry.actor, entry.at)
        assert said == (0, "", "UNDER_WAY", "adopted", "ada", now)
        assert is_whole(run)
        assert [shown(trip) for trip in (first, second)] == ["PLANNED", "UNDER_WAY"]
        emit("trip.arrived", second)
        assert shown(second) == "ARRIVED"

    def test_passes_over_who_has_a_run_or_had_one(self, now):
        fresh, running, over = made("open", "on the way", "on the way")
        start(Travel, running)
        start(Travel, over)
        leave(Travel, over, reason="no more")

        assert adopt(now) == (1, 2)
        assert adopt(now) == (0, 3)

        assert states() == {fresh.pk: "PLANNED", running.pk: "PLANNED", over.pk: "PLANNED"}

    def test_begins_ended_ones_if_told_to_and_starts_nothing_after_them(self, now):
        [trip] = made("done")

        assert adopt(now, with_ended=True) == (1, 0)

        run = TimelineRun.objects.get()
        assert (run.state, run.end_reason, run.ended_at, str(run.end)) == ("ARRIVED", "ARRIVED", now, "exit")
        assert shown(trip) == "ARRIVED"
        assert adopt(now, with_ended=True) == (0, 1)
        assert not ScheduledTask.objects.exists()

    def test_gives_them_their_tasks_and_their_way_back(self, now, later):
        [trip] = made("aside")

        assert adopt(now, machine="detour", states={}, back={"aside": "ahead"}) == (1, 0)

        run = TimelineRun.objects.get()
        assert (run.state, run.back) == ("aside", "ahead")
        assert is_whole(run)
        assert [task.task_key for task in ScheduledTask.objects.all()] == ["detour.look"]
        emit("road.open", trip)
        run.refresh_from_db()
        assert run.state == "ahead"

    def test_takes_the_column_that_shows_the_state_for_its_source(self, now):
        [trip] = made("")
        Trip.objects.update(state="DELAYED")

        assert adopt(now, column="state", states={}) == (1, 0)

        assert states() == {trip.pk: "DELAYED"}
        assert shown(trip) == "DELAYED"

    def test_reads_the_value_again_under_the_lock(self, now):
        """Of a row that was changed after the survey, what it says by then counts; what nobody has mapped is refused."""
        trips = made("open", "open", "open", "open")
        adoption = planned()
        check_survey(adoption, survey(adoption))
        adopting = adopt_rows(adoption, size=2, clock=lambda _using: now, using="default")
        next(adopting)
        Trip.objects.filter(pk=trips[3].pk).update(status="lost")

        with pytest.raises(InvalidInput, match="'lost'"):
            next(adopting)

        assert set(states()) == {trips[0].pk, trips[1].pk}

    def test_leaves_out_what_is_not_chosen_any_more_under_the_lock(self, now):
        """Somebody takes the row out of the filter while the batch waits for it."""
        [trip] = made("open")

        def meanwhile(_using):
            Trip.objects.filter(pk=trip.pk).update(note="not this one")
            return now

        adoption = planned(filters={"note": ""})
        assert [*adopt_rows(adoption, clock=meanwhile, using="default")] == [(0, 1)]
        assert states() == {}

    @pytest.mark.parametrize("size", [0, 10_001])
    def test_refuses_a_batch_of_no_size(self, now, size):
        with pytest.raises(InvalidInput, match="batch_size"):
            adopt(now, size=size)

    def test_takes_as_many_statements_for_ten_as_for_a_thousand(self, now):
        def count(many):
            made = Trip.objects.bulk_create([Trip(status=list(MEANING)[place % 2]) for place in range(many)])
            with CaptureQueriesContext(connection) as queries:
                adopt(now, size=many, filters={"pk__gte": made[0].pk})
            return len(queries)

        count(2)  # What is asked once is known.
        assert count(200) == count(1000)
