"""The sweep puts right what entities show whose machines have ended."""

from __future__ import annotations

import logging

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.testapp.models import Trip
from tests.trips import Travel, overwrite, shown
from timeline.features.sweep.searches import EndedRuns, ended_parts
from timeline.features.sweep.verbs import begin_round, sweep
from timeline.models import Sweep
from timeline.shortcuts import emit, leave
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _travel():
    with only_timelines(Travel):
        yield


@pytest.fixture
def ended(clock):
    """Make trips that have arrived, and show something else."""

    def make(count=1):
        trips = [Trip.objects.create() for _ in range(count)]
        for trip in trips:
            emit("trip.booked", trip)
            emit("trip.called_off", trip)
            overwrite(trip, "DELAYED")
        return trips

    return make


def swept(clock, size=500):
    begin_round(using="default")
    mended = 0
    while (done := sweep(size=size, now=clock.now, using="default")).left:
        mended += done.mended
    return mended


class TestEndedRuns:
    def test_show_the_state_in_which_they_ended(self, ended, clock, caplog):
        trips = ended(3)

        with caplog.at_level(logging.INFO, logger="timeline"):
            assert swept(clock, size=2) == 3

        assert [shown(trip) for trip in trips] == ["ARRIVED"] * 3
        assert "States of" in caplog.text
        assert swept(clock) == 0

    def test_leave_it_to_the_run_that_is_open_again(self, ended, clock):
        [trip] = ended()
        emit("trip.booked", trip)
        emit("trip.left", trip)

        assert swept(clock) == 0

        assert shown(trip) == "UNDER_WAY"

    def test_the_last_one_counts(self, ended, clock):
        [trip] = ended()
        clock.advance(minutes=5)
        emit("trip.booked", trip)
        emit("trip.left", trip)
        leave(Travel, trip, reason="nobody knows where")
        overwrite(trip, "DELAYED")

        swept(clock)

        assert shown(trip) == "UNDER_WAY"

    def test_are_looked_at_for_a_day(self, ended, clock):
        [trip] = ended()
        clock.advance(days=1, minutes=1)

        assert swept(clock) == 0

        assert shown(trip) == "DELAYED"

    def test_take_as_many_statements_for_two_as_for_ten(self, ended, clock):
        def count(many):
            Trip.objects.update(state="ARRIVED")
            ended(many)
            taken = EndedRuns(["travel"]).take({}, begins=True, size=20, using="default")
            with CaptureQueriesContext(connection) as queries:
                assert EndedRuns(["travel"]).mend(taken.some, now=clock.now, using="default").mended == many
            return len(queries)

        assert count(2) == count(10)


class TestEndedParts:
    def test_are_none_where_no_machine_shows_its_state(self, clock):
        class Silent(Travel):
            mirror = ""

        with only_timelines(Silent):
            assert list(ended_parts()) == []
            swept(clock)
            assert [*Sweep.objects.values_list("pk", flat=True)] == [""]
        [part] = ended_parts()
        assert (part.name, part.machines) == ("machines: ended", ["travel"])

    def test_begin_within_the_last_day(self, clock, ended):
        ended()
        part = EndedRuns(["travel"])

        assert len(part.take({}, begins=True, size=1, using="default").some) == 1
        clock.advance(days=2)
        assert part.take({}, begins=True, size=1, using="default").some == []
