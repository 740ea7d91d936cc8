"""States as anchors: how they are written, told and refused; a backoff that has tries."""

from datetime import timedelta
from enum import StrEnum

import pytest

from timeline import Retry, after, on
from timeline.timing import Backoff, Offset, states_in
from timeline.timing.states import anchor_of, told_states


class S(StrEnum):
    ASKED = "asked"
    WAITS = "waits"


class TestOn:
    @pytest.mark.parametrize(
        ("when", "states", "said"),
        [
            (on("asked"), ("asked",), "when asked is entered"),
            (on(S.ASKED, S.WAITS, minutes=10), ("asked", "waits"), "10 minutes after asked or waits is entered"),
            (after(S.ASKED, minutes=10), ("asked",), "10 minutes after asked is entered"),
            (after(S.ASKED, S.WAITS, days=1), ("asked", "waits"), "1 day after asked or waits is entered"),
            (after("asked", "waits", timedelta(hours=1)), ("asked", "waits"), "1 hour after asked or waits is entered"),
            (
                on("asked", backoff=Retry(max_attempts=6), spent="x"),
                ("asked",),
                "when asked is entered, later with each try",
            ),
        ],
    )
    def test_is_bound_to_its_states(self, when, states, said):
        assert when.problems == ()
        assert (when.states, when.during, when.describe()) == (states, states, said)
        assert {type(state) for state in when.during} == {str}
        assert when.anchor_in("asked") == "state:asked"

    def test_leaves_fields_and_tasks_as_they_were(self):
        when = after("ends_at", timedelta(hours=1), days=1)

        assert (when.field_name, when.during, when.offset) == ("ends_at", (), Offset(0, 1, timedelta(hours=1)))
        assert after(timedelta(hours=1)).anchor_in("asked") == "start"

    @pytest.mark.parametrize(
        ("when", "problem"),
        [
            (on(), "on() names no state."),
            (on("two words"), "names the state 'two words'."),
            (on(""), "names the state ''."),
            (on(S.ASKED, 3), "names the state 3."),
            (on("asked", "asked"), "names a state twice."),
            (on("asked", minutes=-1), "has a negative distance."),
            (on("asked", days=1.5), "days=1.5 is not a whole number."),
            (on("asked", backoff=3), "has backoff=3."),
            (on("asked", backoff=Retry(), minutes=1), "has both a distance and a backoff."),
            (
                on("asked", backoff=Retry(base=timedelta(0))),
                "retry has no positive base, or a cap below it or too long.",
            ),
            (on("asked", spent="used.up"), "has spent='used.up', and no backoff that could be."),
            (on("asked", backoff=Retry(), spent="used up"), "has spent='used up'."),
            (on("asked", backoff=Retry(), spent="up"), "has a backoff with max_attempts, or with spent, but not both."),
            (
                on("asked", backoff=Retry(max_attempts=2)),
                "has a backoff with max_attempts, or with spent, but not both.",
            ),
            (after(None, "asked", hours=1), "counts from 'asked' as well."),
        ],
    )
    def test_says_what_is_wrong(self, when, problem):
        assert problem in [said for said, _remedy in when.problems]


class TestBackoff:
    RETRY = Retry(base=timedelta(seconds=30), cap=timedelta(hours=1), max_attempts=3, jitter=0.5)

    def test_waits_longer_each_time_up_to_its_cap(self):
        backoff = Backoff(self.RETRY, "used.up")

        assert [backoff.wait(tries, 0).seconds for tries in (1, 2, 3, 9)] == [30, 60, 120, 3600]
        assert backoff.wait(1, 1).total_seconds() == 45

    @pytest.mark.parametrize(("tries", "again"), [(1, True), (2, True), (3, False), (4, False)])
    def test_of_its_two_events_one_is_wanted_at_a_time(self, tries, again):
        used_up = Backoff(self.RETRY, "used.up", is_spent=True)

        assert Backoff(self.RETRY, "used.up").is_wanted(tries) is again
        assert used_up.is_wanted(tries) is not again
        assert used_up.wait(tries, 1) == timedelta(0)
        assert used_up.describe("when asked is entered") == "when asked is entered, as try number 3 in a row"

    def test_goes_on_for_ever_without_a_number_of_tries(self):
        assert Backoff(Retry()).is_wanted(10_000)


class TestAnchor:
    def test_is_read_as_it_was_written(self):
        assert states_in(anchor_of(["asked", "waits"])) == ("asked", "waits")
        assert states_in("field:asked") == ()
        assert told_states(["a", "b"]) == "a or b"
