"""Each way to move a machine writes its state where its entity shows it, in the same transaction."""

from __future__ import annotations

import logging

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from tests.testapp.models import Cruise, Leg, Trip, TripProxy
from tests.trips import Travel, overwrite, shown
from timeline import TransitionNotAllowed, created
from timeline.features.machines.mirror import mirror_runs, statement_to_mirror
from timeline.features.sweep.verbs import sweep
from timeline.models import EntityRef, StateField, TimelineRun
from timeline.shortcuts import emit, emit_many, reconcile, start, start_many
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db


class Silent(Travel):
    """The same of orders, which show nothing."""

    entity = "testapp.Order"
    mirror = ""


@pytest.fixture(autouse=True)
def _travel():
    with only_timelines(Travel):
        yield


@pytest.fixture
def trip():
    return Trip.objects.create()


def updates(queries):
    return [query["sql"] for query in queries if query["sql"].startswith('UPDATE "testapp_trip"')]


class TestStart:
    def test_writes_the_first_state_and_tells_the_instance(self, trip):
        overwrite(trip, "")
        trip.refresh_from_db()

        start(Travel, trip)

        assert trip.state == shown(trip) == "PLANNED"

    def test_of_another_run_begins_anew(self, trip):
        emit("trip.booked", trip)
        emit("trip.called_off", trip)
        assert trip.state == shown(trip) == "ARRIVED"

        emit("trip.booked", trip)

        assert trip.state == shown(trip) == "PLANNED"

    def test_of_many_is_one_statement(self):
        trips = Trip.objects.bulk_create([Trip() for _ in range(20)])
        Trip.objects.update(state="")

        with CaptureQueriesContext(connection) as queries:
            start_many(Travel, trips)

        assert len(updates(queries)) == 1
        assert set(Trip.objects.values_list("state", flat=True)) == {"PLANNED"}

    def test_of_a_run_with_a_key_shows_nothing(self, trip):
        overwrite(trip, "")

        start(Travel, trip, key="second")

        assert shown(trip) == ""

    def test_by_creation_is_in_the_same_transaction(self):
        class Hop(Travel):
            starts_on = created()

        with only_timelines(Hop), transaction.atomic():
            trip = Trip.objects.create()
            assert TimelineRun.objects.get().state == trip.state == shown(trip) == "PLANNED"
            trip.save()


class TestEmit:
    @pytest.mark.parametrize("kind", [Trip, TripProxy, Cruise])
    def test_writes_it_and_tells_the_instance(self, kind):
        trip = kind.objects.create()
        emit("trip.booked", trip)

        emit("trip.left", trip)

        assert trip.state == shown(trip) == "UNDER_WAY"
        trip.save()

    def test_undone_undoes_it(self, trip):
        emit("trip.booked", trip)

        with transaction.atomic():
            emit("trip.left", trip)
            transaction.set_rollback(True)

        assert shown(trip) == "PLANNED"
        trip.save()  # The instance says what was undone; saving it writes what the row has.
        assert shown(trip) == "PLANNED"

    def test_refused_writes_nothing(self, trip):
        emit("trip.booked", trip)

        with pytest.raises(TransitionNotAllowed):
            emit("trip.arrived", trip)

        assert trip.state == shown(trip) == "PLANNED"

    def test_never_asks_what_the_row_shows(self, trip):
        emit("trip.booked", trip)
        overwrite(trip, "DELAYED")

        emit("trip.left", trip)

        assert TimelineRun.objects.get().state == shown(trip) == "UNDER_WAY"

    def test_of_a_machine_that_shows_nothing_takes_no_statement_more(self, order):
        """
        As many where another machine shows its state as where none does. Where it does itself, PostgreSQL writes it in the
        statement that moves the run; SQLite takes one more.
        """

        def count(entity, event, *machines):
            with only_timelines(*machines), CaptureQueriesContext(connection) as queries:
                emit(event, entity)
            return len(queries)

        trip = Trip.objects.create()
        with only_timelines(Silent, Travel):
            for entity in (order, trip):  # From then on the moves are known to the database.
                for event in ("trip.booked", "trip.left", "trip.held_up", "trip.left", "trip.held_up"):
                    emit(event, entity)
        silent = count(order, "trip.left", Silent)
        count(order, "trip.held_up", Silent)

        assert count(order, "trip.left", Silent, Travel) == silent
        assert count(trip, "trip.left", Silent, Travel) == silent + (connection.vendor == "sqlite")


class TestEmitMany:
    def count(self, many):
        trips = Trip.objects.bulk_create([Trip() for _ in range(many)])
        emit_many("trip.booked", trips)
        emit_many("trip.left", trips[: many // 2])
        emit_many("trip.held_up", trips[: many // 2])
        ids = [trip.pk for trip in trips]
        with CaptureQueriesContext(connection) as queries:
            emit_many("trip.called_off", trips[:1])
            emit_many("trip.left", trips[1:])

        states = Trip.objects.filter(pk__in=ids).values_list("state", flat=True)
        assert sorted(set(states)) == ["ARRIVED", "UNDER_WAY"]
        assert list(states).count("UNDER_WAY") == many - 1
        return len(updates(queries))

    def test_writes_any_number_in_one_statement_a_round(self):
        assert self.count(10) == self.count(400) == 2

    def test_to_several_states_is_one_statement(self):
        trips = Trip.objects.bulk_create([Trip() for _ in range(6)])
        runs = [
            TimelineRun(timeline="travel", entity_label="testapp.trip", entity_id=str(trip.pk), state=state)
            for trip, state in zip(trips, [*Leg, "", "PLANNED"], strict=True)
        ]

        with CaptureQueriesContext(connection) as queries:
            changed = mirror_runs(runs, using="default")

        assert (changed, len(queries)) == (3, 1)
        shown_now = [shown(trip) for trip in trips]
        assert shown_now == [*Leg, "PLANNED", "PLANNED"]

    def test_leaves_rows_of_other_models_alone(self, trip):
        """A machine that was about another model has runs that only look as if they were of this one."""
        run = TimelineRun(timeline="travel", entity_label="testapp.order", entity_id=str(trip.pk), state="ARRIVED")

        assert mirror_runs([run], using="default") == 0

        assert shown(trip) == "PLANNED"


@pytest.mark.only_postgresql
class TestStatementToMirror:
    def said(self, trip, state="ARRIVED", key=""):
        return "travel", EntityRef("testapp.trip", str(trip.pk)), key, state

    def test_writes_what_django_would(self, trip):
        others = Trip.objects.bulk_create([Trip(), Trip()])
        sql, parameters = statement_to_mirror([self.said(trip), self.said(others[0])], using="default")

        with connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            first = cursor.rowcount
            cursor.execute(sql, parameters)
            second = cursor.rowcount

        assert (first, second) == (2, 0)
        assert [shown(known) for known in (trip, *others)] == ["ARRIVED", "ARRIVED", "PLANNED"]

    def test_is_none_where_it_takes_more_or_nothing_is_shown(self, trip, order):
        several = [self.said(trip), self.said(Trip.objects.create(), "DELAYED")]
        with only_timelines(Travel, Silent):
            silent = "silent", EntityRef("testapp.order", str(order.pk)), "", "ARRIVED"

            for said in (several, [self.said(trip, key="k")], [self.said(trip, "")], [silent], []):
                assert statement_to_mirror(said, using="default") is None

    def test_is_none_for_a_field_that_writes_in_a_way_of_its_own(self, trip, monkeypatch):
        class Loud(StateField):
            pass

        field = Loud()
        field.set_attributes_from_name("state")
        field.model = Trip
        monkeypatch.setattr("timeline.features.machines.mirror.mirror_of", lambda _definition: field)

        assert statement_to_mirror([self.said(trip)], using="default") is None


class TestThen:
    def test_writes_it_with_the_outcome(self, trip, clock):
        emit("trip.booked", trip)

        clock.advance(days=1)

        assert TimelineRun.objects.get().state == shown(trip) == "UNDER_WAY"


class TestSweep:
    def test_mends_what_a_set_has_written(self, trip, now, caplog):
        emit("trip.booked", trip)
        emit("trip.left", trip)
        overwrite(trip, "ARRIVED")

        with caplog.at_level(logging.INFO, logger="timeline"):
            while sweep(now=now, using="default").left:
                pass

        assert shown(trip) == "UNDER_WAY"
        assert "States of machines that the sweep wrote anew where their entities show them: 1" in caplog.text

    def test_leaves_what_is_right(self, trip, now):
        emit("trip.booked", trip)

        looked = mended = 0
        while (swept := sweep(now=now, using="default")).left:
            looked, mended = looked + swept.looked, mended + swept.mended

        assert (looked, mended) == (1, 0)


class TestReconcile:
    def test_mends_it_at_once(self, trip):
        emit("trip.booked", trip)
        overwrite(trip, "ARRIVED")

        reconcile(trip)

        assert shown(trip) == "PLANNED"
