"""The statement that makes changes: of what they touch, and of nothing more. What it does: test_conformance.py."""

from __future__ import annotations

import re

import pytest

from timeline.dialects import POSTGRESQL, SQLITE
from timeline.lifecycle import FINAL, OPEN, State
from timeline.store.changes import ALWAYS, composed, touched

DUE = {"to_state": "available"}
SOURCES = {
    "one": {},
    "many": {"selection": "these"},
    "found": {"selection": "due", "paths": ((State.SCHEDULED, State.AVAILABLE),)},
    "each": {},
}


def made_of(source, touches, columns=(), **given):
    dialect = SQLITE if source == "each" else POSTGRESQL
    return composed(dialect, source, touches, columns, **{**SOURCES[source], **given})


def text_of(source, touches):
    made = made_of(source, touches)
    return f"{made.sql}\n{made.log}"


class TestTouched:
    def test_are_values_and_states_of_all_changes(self):
        assert touched([DUE | {"failures": 1}, {"to_state": "retryable", "reason": "no"}]) == {
            "to_state",
            "failures",
            "reason",
            State.AVAILABLE,
            State.RETRYABLE,
        }

    @pytest.mark.parametrize("state", State)
    def test_tell_whether_one_ends(self, state):
        assert ("ends" in touched([DUE, {"to_state": state.value}])) is (state in FINAL)


class TestComposed:
    @pytest.mark.parametrize("source", SOURCES)
    def test_leaves_no_place_unfilled(self, source):
        everything = touched([{"to_state": state.value, "failures": 1, "detail": "{}"} for state in OPEN])

        assert not re.search(r"\{\w+\}|-- if", text_of(source, everything))

    @pytest.mark.parametrize("source", SOURCES)
    @pytest.mark.parametrize(
        ("given", "set_by_it"),
        [
            ({"failures": 1}, "failures = task.failures +"),
            ({"scheduled_at": "…"}, "scheduled_at = COALESCE"),
            ({"worker": ""}, "worker = COALESCE"),
            ({"to_state": "active"}, "started_at = CASE"),
            ({"to_state": "completed"}, "finished_at = CASE"),
        ],
        ids=str,
    )
    def test_sets_what_is_touched_and_nothing_more(self, source, given, set_by_it):
        assert set_by_it in text_of(source, touched([DUE | given]))
        assert set_by_it not in text_of(source, touched([DUE]))

    @pytest.mark.parametrize(
        ("source", "read"),
        [
            ("one", "%(failures)s::integer"),
            ("many", "change.failures"),
            ("each", "json_extract(change.value, '$.failures')"),
        ],
    )
    def test_reads_each_value_where_it_comes_from(self, source, read):
        assert f"task.failures + COALESCE({read}, 0)" in text_of(source, touched([DUE | {"failures": 1}]))

    def test_returns_what_a_transition_tells_and_what_it_sets(self):
        columns = made_of("one", touched([DUE | {"failures": 1}])).columns

        assert columns[: len(ALWAYS)] == ALWAYS
        assert "failures" in columns
        assert "worker" not in columns

    def test_returns_what_is_asked_for_instead(self):
        assert made_of("found", touched([DUE]), ("id", "queue")).columns == ("id", "queue")

    def test_writes_the_log_in_a_second_statement_on_sqlite_only(self):
        assert "timeline_logentry" in made_of("each", touched([DUE])).log
        for source in ("one", "many", "found"):
            made = made_of(source, touched([DUE]))
            assert (made.log, "timeline_logentry" in made.sql) == ("", True)

    @pytest.mark.parametrize("wait", [True, False])
    def test_passes_over_what_is_locked_only_if_told_to(self, wait):
        sql = made_of("many", touched([DUE]), wait=wait).sql

        assert ("SKIP LOCKED" in sql) is not wait

    def test_moves_what_is_found_by_way_of_the_state_between(self):
        paths = ((State.AVAILABLE, State.ACTIVE), (State.SCHEDULED, State.AVAILABLE, State.ACTIVE))

        sql = made_of("found", touched([{"to_state": "active"}]), selection="given", paths=paths).sql

        assert "CASE change.from_state WHEN 'scheduled' THEN 'available' END" in sql
        assert "change.from_state IN ('available', 'scheduled')" in sql
