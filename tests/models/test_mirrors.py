"""Which machines show their states in a field."""

import pytest

from tests.testapp.models import Cruise, Trip, TripProxy
from tests.trips import Travel
from timeline import Machine
from timeline.models.state_field import machine_begun_with, machines_showing, mirror_of
from timeline.testing import only_timelines


class Sailing(Travel):
    entity = "testapp.Cruise"


class Silent(Travel):
    mirror = ""


FIELD = Trip._meta.get_field("state")


class TestMirrorOf:
    @pytest.mark.parametrize(("machine", "field"), [(Travel, FIELD), (Sailing, FIELD), (Silent, None)])
    def test_is_the_field_that_has_the_column(self, machine: type[Machine], field):
        assert mirror_of(machine.definition) is field


class TestMachinesShowing:
    def test_are_those_whose_rows_have_it(self):
        with only_timelines(Silent, Sailing):
            assert machines_showing(FIELD) == [Sailing.definition]
            assert machines_showing(Trip._meta.get_field("note")) == []


class TestMachineBegunWith:
    @pytest.mark.parametrize(
        ("machine", "model", "begins"),
        [
            (Travel, Trip, True),
            (Travel, TripProxy, True),
            (Travel, Cruise, True),
            (Sailing, Cruise, True),
            (Sailing, Trip, False),
        ],
    )
    def test_is_about_the_row(self, machine, model, begins):
        with only_timelines(machine):
            assert machine_begun_with(model, FIELD) == (machine.definition if begins else None)
