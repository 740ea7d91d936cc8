"""The rules of machines object to what they are about, and to nothing else."""

from __future__ import annotations

import pytest

from tests.faults.check.history import Asked, Event, Move, Run
from tests.faults.test_rules import rules, task

TABLE = {
    "visit": {
        "asking": {"halted": "halted"},
        "halted": {"resolved": "BACK", "reminded": "STAY", "over": "lost"},
        "lost": {},
    }
}
MOVES = [
    Move("r", 0, "", "asking", "", "wanted", "e0"),
    Move("r", 1, "asking", "halted", "asking", "halted", "e1"),
    Move("r", 2, "halted", "halted", "asking", "reminded", "e2"),
    Move("r", 3, "halted", "asking", "asking", "resolved", "e3"),
    Move("r", 4, "asking", "halted", "asking", "halted", "e4"),
    Move("r", 5, "halted", "lost", "asking", "over", "e5"),
]
EVENTS = {f"e{number}": Event(f"e{number}", move.event, "1", f"k{number}") for number, move in enumerate(MOVES)}
RUN = Run("r", "visit", "1", 12.0, "lost", "lost", "asking", 5)
SAID = Asked("say", ("k2",), "1", None, 11.0, 11.1)
RIGHT = {"runs": [RUN], "moves": MOVES, "events": EVENTS, "machines": TABLE, "asked": [SAID]}


def with_move(number, **columns):
    """The right moves, but for one."""
    return [*MOVES[:number], MOVES[number]._replace(**columns), *MOVES[number + 1 :]]


BAD = {
    "an entry that is gone": ("moves", {"moves": [*MOVES[:2], *MOVES[3:]]}),
    "no entry at all": ("moves", {"moves": []}),
    "a state that no entry leads to": ("moves", {"runs": [RUN._replace(state="halted")]}),
    "a jump": ("moves", {"moves": with_move(3, to_state="halted")}),
    "an event that the state does not take": ("table", {"moves": with_move(1, event="over")}),
    "another way than the table's": ("table", {"moves": with_move(5, to_state="asking")}),
    "back to where it never was": ("table", {"moves": with_move(3, to_state="lost")}),
    "an open run at an end of its table": ("rests", {"runs": [RUN._replace(ended_at=None)]}),
    "a run that ended on its way": ("rests", {"runs": [RUN._replace(state="halted")]}),
    "a run with nothing ahead": (
        "rests",
        {"runs": [RUN._replace(state="halted", ended_at=None, moves=4)], "moves": MOVES[:5]},
    ),
    "one event that moved twice": ("said", {"moves": with_move(3, cause_id="e2")}),
    "a move by an event that is not there": ("said", {"moves": with_move(3, cause_id="gone")}),
    "what was said, and is not recorded": ("said", {"asked": [SAID._replace(task_ids=("k9",))]}),
    "what was said, and moved nothing": ("said", {"moves": with_move(2, cause_id=None)}),
}


class TestJudge:
    def test_passes_what_is_right(self):
        assert rules(**RIGHT) == set()

    def test_passes_an_open_run_with_a_timer(self):
        resting = RUN._replace(state="halted", ended_at=None, moves=4)
        timer = task("t", run_id="r", state="scheduled", scheduled_at=200.0, seq=0, attempt=0, finished_at=None)

        assert rules(**RIGHT | {"runs": [resting], "moves": MOVES[:5], "tasks": [timer], "entries": []}) == set()

    @pytest.mark.parametrize(("rule", "history"), BAD.values(), ids=BAD)
    def test_objects_to_what_is_wrong(self, rule, history):
        assert rule in rules(**RIGHT | history)
