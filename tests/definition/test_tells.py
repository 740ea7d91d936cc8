"""What a machine tells is a state or an event of its table, or an error at start."""

from __future__ import annotations

import pytest

from timeline import IGNORE, Machine, never
from timeline.exceptions import DefinitionError


def declared(**options):
    table = {"new": {"sent": "gone", "seen": IGNORE}, "gone": {}}
    timers = {"new": never}
    return type(
        "Parcel",
        (Machine,),
        {"entity": "testapp.Order", "starts_on": "begun", "initial": "new", "table": table, "timers": timers} | options,
    )


class TestTells:
    @pytest.mark.parametrize("names", [(), ("gone",), ["sent", "gone", "begun", "new"], {"sent"}])
    def test_are_states_and_events_that_move(self, names):
        assert declared(tells=names).definition.tells == set(names)

    @pytest.mark.parametrize(
        ("names", "said"),
        [
            ("gone", "Give states and events, as a tuple"),
            (("gnoe",), "Did you mean 'gone'"),
            (("seen",), "only ignores"),
            ((7,), "no state and no event"),
        ],
    )
    def test_are_refused_if_they_are_not(self, names, said):
        with pytest.raises(DefinitionError, match=said):
            declared(tells=names)
