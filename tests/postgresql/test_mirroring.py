"""What an entity shows stays what its run is in, whoever saves or moves it at once."""

from __future__ import annotations

import os
from functools import partial

import pytest

from tests.testapp.models import Trip
from tests.trips import Travel, overwrite, shown
from timeline.features.machines.adopt_rows import adopt_rows, plan_adoption
from timeline.features.sweep.verbs import begin_round, sweep
from timeline.models import RunEntry, TimelineRun
from timeline.shortcuts import emit, start
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = int(os.environ.get("RACE_ROUNDS", "60")) // 3


@pytest.fixture(autouse=True)
def _travel():
    with only_timelines(Travel):
        yield


def under_way():
    trip = Trip.objects.create()
    start(Travel, trip)
    emit("trip.left", trip)
    return trip


class TestAnOldInstance:
    def test_that_is_saved_beside_a_move_does_not_undo_it(self, at_once):
        for number in range(ROUNDS):
            trip = under_way()
            old = Trip.objects.get(pk=trip.pk)
            old.note = "saved"
            works = [partial(emit, "trip.held_up", trip), old.save][:: 1 if number % 2 else -1]

            done = at_once(*works)

            assert not [one for one in done if isinstance(one, Exception)]
            row = Trip.objects.get(pk=trip.pk)
            assert (row.state, row.note) == ("DELAYED", "saved")


class TestTheSweep:
    def test_beside_a_move_leaves_what_the_run_is_in(self, at_once, now):
        for _ in range(ROUNDS):
            trip = under_way()
            overwrite(trip, "PLANNED")
            begin_round(using="default")

            at_once(partial(emit, "trip.held_up", trip), partial(sweep, now=now, using="default"))

            assert shown(trip) == TimelineRun.objects.get(entity_id=str(trip.pk)).state == "DELAYED"


class TestTwoWhoAdopt:
    def test_begin_one_run_for_each_row(self, at_once, now):
        for _ in range(ROUNDS // 4):
            trips = Trip.objects.bulk_create([Trip(status="PLANNED" if place % 3 else "ARRIVED") for place in range(9)])

            def adopt(first=trips[0].pk):
                adoption = plan_adoption(
                    machine="travel",
                    column="status",
                    states={},
                    filters={"pk__gte": first},
                    with_ended=True,
                    using="default",
                )
                *_before, last = adopt_rows(adoption, size=4, clock=lambda _using: now, using="default")
                return last.begun

            done = at_once(adopt, adopt)

            assert sum(done) == 9
            ids = [str(trip.pk) for trip in trips]
            runs = TimelineRun.objects.filter(entity_id__in=ids)
            assert len({run.entity_id for run in runs}) == runs.count() == 9
            assert RunEntry.objects.filter(run__in=runs).count() == 9
