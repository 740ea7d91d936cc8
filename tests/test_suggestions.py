"""Which name is meant."""

from enum import StrEnum

import pytest

from timeline.suggestions import MOST_COMPARED, did_you_mean, near

OPTIONS = ["entity", "name", "starts_on", "exits", "owner", "time_zone"]


class State(StrEnum):
    BOOKED = "BOOKED"


class TestNear:
    @pytest.mark.parametrize(
        ("given", "meant"),
        [
            ("start_on", "starts_on"),
            ("exit", "exits"),
            ("owners", "owner"),
            ("timezone", "time_zone"),
            ("NAME", "name"),
        ],
    )
    def test_finds_what_is_spelled_alike(self, given, meant):
        assert near(given, OPTIONS) == [meant]

    @pytest.mark.parametrize("given", ["colour", "starts_in_the_evening", "", 3, None])
    def test_finds_nothing_where_nothing_is_alike(self, given):
        assert near(given, OPTIONS) == []

    def test_finds_nothing_in_names_that_only_begin_alike(self):
        assert near("status", ["state"]) == near("payment.refused", ["payment.configured"]) == []

    def test_gives_the_best_first_and_no_more_than_asked(self):
        assert near("remind", ["remnd", "reminder", "remind_me", "other"], most=2) == ["remnd", "reminder"]

    def test_finds_a_name_by_the_part_after_its_dot(self):
        assert near("remnd", ["trial.remind", "care"]) == ["trial.remind"]

    def test_gives_plain_text_for_a_member_of_an_enumeration(self):
        assert repr(near("BOKED", [State.BOOKED])) == "['BOOKED']"

    def test_compares_the_beginning_of_a_long_name(self):
        assert near("a" * 100_000, ["a" * MOST_COMPARED]) == ["a" * MOST_COMPARED]


class TestDidYouMean:
    def test_asks_for_the_best(self):
        assert did_you_mean("exitz", OPTIONS) == "Did you mean 'exits'?"

    def test_says_something_else_where_nothing_is_alike(self):
        assert did_you_mean("colour", OPTIONS, otherwise="Name one.") == "Name one."
