"""The races notice planted faults, in few rounds: each takes away something that protects one of the two acts."""

from __future__ import annotations

import pytest
from django.db import connection

from tests.asking import WHOLE
from tests.faults.planted.surgery import planted
from tests.faults.races.faults import PLANTED
from tests.faults.races.releasing import RELEASE_AGAINST_EXITS
from tests.faults.world import Clock, World, wipe
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

OURS = [one for one in PLANTED if any(change.vendor in ("", connection.vendor) for change in one.fault.changes)]
ASKED = OURS if WHOLE else list({one.race: one for one in reversed(OURS)}.values())  # The first of each race.
ROUNDS = {one.race: max(other.rounds for other in ASKED if other.race is one.race) for one in ASKED}


@pytest.fixture(autouse=True)
def _world():
    wipe()
    clock = Clock()
    with only_timelines(World), clock.told():
        yield
    wipe()


class TestRace:
    @pytest.mark.parametrize(("race", "rounds"), ROUNDS.items(), ids=[race.name for race in ROUNDS])
    def test_goes_well_without_a_fault(self, race, rounds):
        """In as many rounds as are enough for each fault."""
        race.go(rounds)


class TestPlantedFault:
    def test_there_is_one_for_each_race(self):
        """On SQLite too, for each race that it has."""
        on_both = [one.race for one in PLANTED if {change.vendor for change in one.fault.changes} != {"postgresql"}]

        assert {one.race for one in PLANTED} - set(on_both) == {RELEASE_AGAINST_EXITS}

    @pytest.mark.parametrize("one", ASKED, ids=[one.name for one in ASKED])
    def test_is_noticed(self, one, tmp_path):
        with planted(one.fault, tmp_path), pytest.raises(AssertionError):
            one.race.go(one.rounds)
