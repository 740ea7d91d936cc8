"""Where the states and ways of a machine stand on a drawing."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import combinations, pairwise

import pytest

from tests.machines import Booking
from timeline import BACK, IGNORE, OPEN, STAY, Machine, on
from timeline.exceptions import InvalidInput
from timeline.features.machines.pictures import LONGEST, machine_picture
from timeline.features.machines.reading import MoveLine
from timeline.timelines import Alerts

AT = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


class Door(Machine):
    entity = "testapp.Order"
    initial = "shut"
    table = {
        "shut": {"door.opened": "open"},
        "open": {"door.shut": "shut", "door.pushed": STAY, "door.late": "held"},
        "held": {"door.freed": BACK, "door.knocked": IGNORE},
        "gone": {},
        OPEN: {"door.torn": "gone"},
    }
    working = ("shut",)
    timers = {"door.late": on("open", hours=1), "door.freed": on("held", days=1)}


def box_of(picture, state):
    [box] = [box for box in picture.boxes if box.state == state]
    return box


def move(seq, source, target, event):
    return MoveLine(seq=seq, at=AT, from_state=source, to_state=target, event=event, actor="")


class TestBoxes:
    def test_are_the_states_in_the_order_of_the_table_by_kind(self):
        picture = machine_picture(Door.definition)

        assert [(box.state, box.kind) for box in picture.boxes] == [
            ("shut", "working"),
            ("open", "rest"),
            ("held", "rest"),
            ("gone", "end"),
            ("any open state", "any"),
        ]
        assert [box.state for box in picture.boxes if box.is_initial] == ["shut"]

    def test_say_what_each_state_takes_and_what_comes_by_itself(self):
        lines = [line.text for line in box_of(machine_picture(Door.definition), "open").lines]

        assert lines[:2] == ["door.shut → shut", "door.pushed → the same, anew"]
        assert lines[2].startswith("door.late → held · 1 hour")

    @pytest.mark.parametrize("machine", [Door, Booking])
    def test_stand_apart_and_inside(self, machine):
        picture = machine_picture(machine.definition)

        assert all(above.top + above.height < below.top for above, below in pairwise(picture.boxes))
        last = picture.boxes[-1]
        assert last.top + last.height < picture.height
        assert all(len(line.text) <= LONGEST for box in picture.boxes for line in box.lines)

    def test_cut_what_is_too_long(self):
        class Long(Machine):
            entity = "testapp.Order"
            initial = "a" * 50
            table = {"a" * 50: {"e" * 100: "b"}, "b": {}}

        [line] = box_of(machine_picture(Long.definition), "a" * 50).lines
        assert line.text.endswith("…")
        assert line.whole == f"{'e' * 100} → b"


class TestLanes:
    @pytest.mark.parametrize("machine", [Door, Booking])
    def test_lead_from_each_event_to_its_state(self, machine):
        picture, table = machine_picture(machine.definition), machine.definition.machine
        lanes = picture.lanes_left + picture.lanes_right
        drawn = {(known.source, known.target) for lane in lanes for known in lane.stretches}
        wanted = {
            (line.middle, box_of(picture, line.target).middle)
            for box in picture.boxes
            for line in box.lines
            if line.target in table.states and line.target != box.state
        }

        assert drawn == wanted

    @pytest.mark.parametrize("machine", [Door, Booking])
    def test_stand_beside_each_other_where_they_would_meet(self, machine):
        picture = machine_picture(machine.definition)

        for lanes in (picture.lanes_left, picture.lanes_right):
            for one, other in combinations(lanes, 2):
                assert one.x != other.x or one.bottom < other.top or other.bottom < one.top
        assert all(0 < lane.x < picture.left for lane in picture.lanes_left)
        assert all(picture.right < lane.x < picture.width for lane in picture.lanes_right)

    def test_are_few_for_28_states(self):
        assert machine_picture(Booking.definition).width < 800


class TestWay:
    def test_is_shown_with_where_the_run_is_how_often_it_came_and_when(self):
        way = [
            move(0, "", "shut", ""),
            move(1, "shut", "open", "door.opened"),
            move(2, "open", "shut", "door.shut"),
            move(3, "shut", "open", "door.opened"),
        ]

        picture = machine_picture(Door.definition, moves=way, now_in="open")

        assert (box_of(picture, "open").visits, box_of(picture, "open").last_at) == (2, AT)
        assert [box.state for box in picture.boxes if box.is_now] == ["open"]
        trod = [line.event for box in picture.boxes for line in box.lines if line.is_gone]
        assert trod == ["door.opened", "door.shut"]
        assert picture.is_about_a_run


class TestOthers:
    def test_are_refused(self):
        with pytest.raises(InvalidInput):
            machine_picture(Alerts.definition)
