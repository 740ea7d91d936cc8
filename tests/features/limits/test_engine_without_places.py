from __future__ import annotations

import pytest

from timeline.features.limits.keys import without_places
from timeline.lifecycle import Reason, ReasonCode, State, Trigger
from timeline.store.transition import Write

pytestmark = pytest.mark.django_db


@pytest.fixture
def ending(make_task):
    """How an attempt ends."""

    def made(held_until="opened", attempt=1, slot=1, entered=False):
        task = make_task(state=State.ACTIVE, attempt=attempt, limit_key="k", slot=slot, held_until=held_until)
        return Write(task=task, triggers=(Trigger.CANCEL,), reason=Reason(ReasonCode.GUARD, "no"), entered=entered)

    return made


class TestWithoutPlaces:
    @pytest.mark.parametrize("held_until", ["attempt", "end", "opened"])
    @pytest.mark.parametrize("attempt", [1, 2])
    def test_gives_up_the_place_of_what_was_never_entered(self, ending, held_until, attempt):
        [changed] = without_places([ending(held_until, attempt)])

        assert changed.slot == 0

    @pytest.mark.parametrize("held_until", ["end+", "opened+"])
    def test_keeps_that_of_what_is_half_done(self, ending, held_until):
        """It was entered before, or took the place over from what was."""
        [changed] = without_places([ending(held_until)])

        assert changed.slot is None

    def test_keeps_that_of_what_was_entered(self, ending):
        write = ending(entered=True)

        assert without_places([write]) == [write]

    def test_leaves_others_as_they_are(self, make_task):
        write = Write(task=make_task(state=State.ACTIVE), triggers=(Trigger.CANCEL,), entered=False)

        assert without_places([write]) == [write]
