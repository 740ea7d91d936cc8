"""The state on a host's model: every way to write a row, and what becomes of it."""

from __future__ import annotations

import copy
import io
import json
import pickle

import django
import pytest
from django import forms
from django.apps import apps
from django.core.management import call_command
from django.db import IntegrityError, connection, models, transaction
from django.db.migrations.state import ProjectState
from django.db.migrations.writer import MigrationWriter
from django.test.utils import CaptureQueriesContext

from tests.testapp.models import Cruise, Leg, Trip, TripProxy
from tests.trips import Travel, overwrite, shown
from timeline.exceptions import DefinitionError, StateMoved
from timeline.models import StateField, known_states
from timeline.shortcuts import emit
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _travel():
    with only_timelines(Travel):
        yield


@pytest.fixture
def trip():
    """A trip that is under way."""
    trip = Trip.objects.create()
    emit("trip.booked", trip)
    emit("trip.left", trip)
    return trip


def elsewhere(trip):
    """Move it where this instance does not see it."""
    emit("trip.held_up", Trip.objects.get(pk=trip.pk))


def pickled(trip):
    return pickle.loads(pickle.dumps(trip))  # noqa: S301 (ours)


class TestInsert:
    @pytest.mark.parametrize("given", [{}, {"state": ""}, {"state": "PLANNED"}, {"state": Leg.PLANNED}])
    @pytest.mark.parametrize("kind", [Trip, TripProxy, Cruise])
    def test_writes_the_first_state(self, kind, given):
        trip = kind.objects.create(**given)

        assert trip.state == shown(trip) == "PLANNED"

    def test_refuses_another(self):
        with pytest.raises(StateMoved, match=r"begins in the state 'PLANNED', and is saved with 'ARRIVED'. Leave the"):
            Trip.objects.create(state=Leg.ARRIVED)

        assert not Trip.objects.exists()

    def test_in_bulk_writes_the_first_state(self):
        trips = Trip.objects.bulk_create([Trip(), Trip(state="PLANNED")])

        assert {trip.state for trip in trips} == set(Trip.objects.values_list("state", flat=True)) == {"PLANNED"}

    def test_in_bulk_refuses_another(self):
        with pytest.raises(StateMoved):
            Trip.objects.bulk_create([Trip(), Trip(state="ARRIVED")])

    def test_of_a_copy_needs_a_state_to_begin_in(self, trip):
        trip.pk, trip._state.adding = None, True
        with pytest.raises(StateMoved):
            trip.save()

        trip.state = ""
        trip.save()

        assert shown(trip) == "PLANNED"

    def test_writes_what_is_given_where_no_machine_shows_its_state(self):
        with only_timelines():
            trip = Trip.objects.create(state="ARRIVED")
            trip.state = "DELAYED"
            trip.save()

        assert shown(trip) == "DELAYED"

    def test_of_a_parent_alone_is_not_of_its_childs_machine(self):
        class Sailing(Travel):
            entity = "testapp.Cruise"

        with only_timelines(Sailing):
            assert Trip.objects.create().state == ""
            assert Cruise.objects.create().state == "PLANNED"


class TestSave:
    def test_of_an_old_instance_does_not_move_it_back(self, trip):
        elsewhere(trip)

        trip.note = "late"
        trip.save()

        assert shown(trip) == "DELAYED"
        # Django 6 reads again what the database made of an expression.
        assert trip.state == ("DELAYED" if django.VERSION >= (6,) else "UNDER_WAY")
        assert type(trip.state) is str
        trip.save()

    def test_asks_nothing_more_than_without_a_machine(self, trip):
        trip = Trip.objects.get(pk=trip.pk)

        with CaptureQueriesContext(connection) as queries:
            trip.save()

        assert [query["sql"].split()[0] for query in queries if "SAVEPOINT" not in query["sql"]] == ["UPDATE"]

    def test_of_what_was_just_inserted_asks_nothing_more(self):
        trip = Trip.objects.create()

        with CaptureQueriesContext(connection) as queries:
            trip.save()

        assert not [query for query in queries if query["sql"].startswith("SELECT")]

    def test_of_a_state_that_was_assigned_is_refused(self, trip):
        trip.state = Leg.ARRIVED

        with pytest.raises(StateMoved, match=r"in the state 'UNDER_WAY', and is saved with 'ARRIVED'. Call emit\(…\)"):
            trip.save()

        assert shown(trip) == "UNDER_WAY"

    @pytest.mark.parametrize("fields", [["state"], ["state", "note"]])
    def test_of_the_state_alone_is_refused(self, trip, fields):
        trip.state = Leg.ARRIVED

        with pytest.raises(StateMoved):
            trip.save(update_fields=fields)

    def test_of_other_fields_leaves_it(self, trip):
        trip.state, trip.note = Leg.ARRIVED, "new"

        trip.save(update_fields=["note"])

        assert (shown(trip), Trip.objects.get().note) == ("UNDER_WAY", "new")

    def test_of_an_instance_that_was_moved_before_is_no_assignment(self, trip):
        trip.save()

        assert trip.state == shown(trip) == "UNDER_WAY"

    def test_after_a_refresh_is_no_assignment(self, trip):
        elsewhere(trip)
        trip.refresh_from_db()

        trip.save()

        assert trip.state == shown(trip) == "DELAYED"

    @pytest.mark.parametrize("fields", [None, ["state"], ["state", "note"]])
    def test_of_an_instance_that_was_refreshed_before_the_last_move(self, trip, fields):
        """What it was read with, refreshed to and is by now are three states: nobody has assigned any."""
        elsewhere(trip)
        trip.refresh_from_db(fields=fields)
        emit("trip.called_off", Trip.objects.get(pk=trip.pk))

        trip.save()

        assert shown(trip) == "ARRIVED"
        trip.state = "PLANNED"
        with pytest.raises(StateMoved):
            trip.save()

    def test_of_an_instance_that_was_saved_before_the_last_move(self, trip):
        elsewhere(trip)
        trip.save()  # Django 6 has it read the new state.
        emit("trip.called_off", Trip.objects.get(pk=trip.pk))

        trip.save()

        assert shown(trip) == "ARRIVED"

    def test_of_a_state_that_was_assigned_and_then_refreshed_away(self, trip):
        trip.state = "ARRIVED"
        trip.refresh_from_db(fields=["note"])
        with pytest.raises(StateMoved):
            trip.save()

        trip.refresh_from_db()
        trip.save()

        assert trip.state == shown(trip) == "UNDER_WAY"

    def test_of_what_was_made_with_a_key_that_is_there_keeps_the_state(self, trip):
        Trip(pk=trip.pk, note="again").save()

        assert shown(trip) == "UNDER_WAY"

        with pytest.raises(StateMoved):
            Trip(pk=trip.pk, state="ARRIVED").save()

    @pytest.mark.parametrize("read", [Trip.objects.defer("state"), Trip.objects.only("note")])
    def test_of_a_state_that_was_not_read(self, trip, read):
        lazy = read.get(pk=trip.pk)
        lazy.save()
        assert lazy.state == "UNDER_WAY"
        lazy.save()

        blind = read.get(pk=trip.pk)
        blind.state = "ARRIVED"
        with pytest.raises(StateMoved):
            blind.save()

        assert shown(trip) == "UNDER_WAY"

    @pytest.mark.parametrize("another", [copy.copy, copy.deepcopy, pickled])
    def test_of_another_of_the_same_row(self, trip, another):
        other = another(Trip.objects.get(pk=trip.pk))
        elsewhere(trip)
        other.save()
        assert shown(trip) == "DELAYED"

        other.state = "ARRIVED"
        with pytest.raises(StateMoved):
            other.save()

    @pytest.mark.parametrize("kind", [TripProxy, Cruise, Trip])
    def test_of_a_relative_does_not_move_it_back(self, kind):
        cruise = Cruise.objects.create()
        emit("trip.booked", cruise)
        old = kind.objects.get(pk=cruise.pk)
        emit("trip.left", cruise)

        old.save()
        assert shown(cruise) == "UNDER_WAY"

        old.state = "ARRIVED"
        with pytest.raises(StateMoved):
            old.save()

    def test_of_a_row_read_by_raw_sql_or_with_a_lock(self, trip):
        [raw] = Trip.objects.raw("SELECT * FROM testapp_trip")
        raw.save()
        with transaction.atomic():
            Trip.objects.select_for_update().get().save()

        assert shown(trip) == "UNDER_WAY"

    def test_by_a_verb_of_many_models_is_refused(self, trip):
        with pytest.raises(StateMoved):
            Trip.objects.update_or_create(pk=trip.pk, defaults={"state": "ARRIVED"})

        Trip.objects.update_or_create(pk=trip.pk, defaults={"note": "fine"})

        assert shown(trip) == "UNDER_WAY"

    def test_after_its_row_was_deleted_begins_anew(self, trip):
        Trip.objects.filter(pk=trip.pk).delete()

        trip.save()

        assert shown(trip) == "PLANNED"

    def test_of_a_new_row_asks_nothing_first(self):
        with CaptureQueriesContext(connection) as queries:
            Trip(pk=9).save()

        assert not [query for query in queries if query["sql"].startswith("SELECT")]


class TestModelsOfMigrations:
    def test_are_saved_as_the_model_itself(self, trip):
        historical = ProjectState.from_apps(apps).apps.get_model("testapp", "Trip")
        assert type(historical._meta.get_field("state")) is StateField

        assert historical.objects.create().state == "PLANNED"
        old = historical.objects.get(pk=trip.pk)
        elsewhere(trip)
        old.note = "migrated"
        old.save()
        assert (shown(trip), Trip.objects.get(pk=trip.pk).note) == ("DELAYED", "migrated")

        old.state = "ARRIVED"
        with pytest.raises(StateMoved), transaction.atomic():
            old.save()


class TestForms:
    def test_do_not_have_it(self):
        assert list(forms.modelform_factory(Trip, fields="__all__").base_fields) == ["note", "status"]

    def test_that_set_it_by_hand_are_refused(self, trip):
        form = forms.modelform_factory(Trip, fields=["note"])({"note": "by form"}, instance=trip)
        form.save()
        assert Trip.objects.get().note == "by form"

        form.instance.state = "ARRIVED"
        with pytest.raises(StateMoved):
            form.save()


class TestInSets:
    """What Django writes without asking a field: the sweep mends it."""

    def test_update_writes_it(self, trip):
        Trip.objects.update(state="DELAYED")

        assert shown(trip) == "DELAYED"

    def test_bulk_update_writes_it(self, trip):
        trip.state = "DELAYED"
        Trip.objects.bulk_update([trip], ["state"])
        assert shown(trip) == "DELAYED"

        trip.note = "more"
        overwrite(trip, "UNDER_WAY")
        Trip.objects.bulk_update([trip], ["note"])
        assert shown(trip) == "UNDER_WAY"

    def test_an_insert_that_updates_writes_the_first_state_if_it_is_named(self, trip):
        again = Trip(pk=trip.pk, note="again")
        Trip.objects.bulk_create([again], update_conflicts=True, unique_fields=["id"], update_fields=["note"])
        assert (shown(trip), Trip.objects.get().note) == ("UNDER_WAY", "again")

        Trip.objects.bulk_create([again], update_conflicts=True, unique_fields=["id"], update_fields=["state"])
        assert shown(trip) == "PLANNED"

        trip.state = "ARRIVED"
        with pytest.raises(StateMoved):
            Trip.objects.bulk_create([trip], update_conflicts=True, unique_fields=["id"], update_fields=["note"])

    def test_fixtures_write_what_they_say(self, tmp_path):
        row = {"model": "testapp.trip", "pk": 7, "fields": {"state": "ARRIVED"}}
        fixture = tmp_path / "trips.json"
        fixture.write_text(json.dumps([row]))
        for _twice in range(2):  # Inserted, then updated.
            call_command("loaddata", str(fixture), verbosity=0)

        assert Trip.objects.get(pk=7).state == "ARRIVED"
        out = io.StringIO()
        call_command("dumpdata", "testapp.trip", stdout=out)
        assert json.loads(out.getvalue())[0]["fields"]["state"] == "ARRIVED"


class TestDeconstruct:
    @pytest.mark.parametrize(
        ("field", "said"),
        [
            (StateField(), "StateField()"),
            (StateField(max_length=20, db_index=True), "StateField(db_index=True, max_length=20)"),
            (StateField(editable=True, blank=False), "StateField(blank=False, editable=True)"),
            (StateField(default="new", db_default="new"), "StateField(db_default='new', default='new')"),
        ],
    )
    def test_says_what_was_asked_for(self, field, said):
        text, imports = MigrationWriter.serialize(field)

        assert text == f"timeline.models.{said}"
        assert "import timeline.models" in imports
        assert field.clone().deconstruct() == field.deconstruct()


class TestKnownStates:
    def test_keeps_out_all_others(self, trip):
        with pytest.raises(IntegrityError), transaction.atomic():
            overwrite(trip, "LOST")

    def test_is_the_same_in_whatever_order(self):
        one, other = known_states(["b", "a"], name="n"), known_states({"a", "b"}, name="n")

        assert one == other
        assert one.condition == models.Q(state__in=["", "a", "b"])

    def test_needs_some(self):
        with pytest.raises(DefinitionError, match="is given no state"):
            known_states([])
