"""What plain JSON is, and what is refused before it is written."""

import json
from collections import OrderedDict
from datetime import UTC, datetime
from decimal import Decimal
from enum import IntEnum
from uuid import UUID

import pytest

from timeline.exceptions import NotPlainJSON, PayloadTooLarge
from timeline.lifecycle import State
from timeline.payloads import MAX_BYTES, MAX_DEPTH, check_json, json_text, same_json


class Number(IntEnum):
    ONE = 1


def in_lists(levels):
    return 0 if levels == 0 else [in_lists(levels - 1)]


def in_dicts(levels):
    return 0 if levels == 0 else {"in": in_dicts(levels - 1)}


class TestCheckJson:
    @pytest.mark.parametrize(
        "value",
        [
            None,
            True,
            0,
            -(10**30),
            1.5,
            "",
            "Zoë 🙂",
            [],
            {},
            {"a": [1, {"b": None}]},
            OrderedDict(a=1),
            State.ACTIVE,
        ],
    )
    def test_takes_what_json_gives_back_as_it_was(self, value):
        check_json("payload", value)

        assert json.loads(json.dumps(value)) == value

    @pytest.mark.parametrize(
        ("value", "problem"),
        [
            pytest.param((1, 2), "has a tuple.", id="a tuple"),
            pytest.param({1, 2}, "has a set.", id="a set"),
            pytest.param(b"x", "has a bytes.", id="bytes"),
            pytest.param(datetime(2026, 3, 1, tzinfo=UTC), "has a datetime.", id="a datetime"),
            pytest.param(Decimal("1.5"), "has a Decimal.", id="a Decimal"),
            pytest.param(UUID(int=1), "has a UUID.", id="a UUID"),
            pytest.param(Number.ONE, "has a Number.", id="a number of a kind of its own"),
            pytest.param(object, "has a type.", id="a class"),
            pytest.param(float("nan"), "has nan, which JSON does not know.", id="not a number"),
            pytest.param(float("inf"), "has inf, which JSON does not know.", id="infinity"),
            pytest.param("a\x00b", "has text with a NUL or half a character", id="a NUL"),
            pytest.param("\ud83d", "has text with a NUL or half a character", id="half a character"),
            pytest.param({1: "x"}, "has a key 1 that is not text.", id="a number as key"),
            pytest.param({None: "x"}, "has a key None that is not text.", id="None as key"),
            pytest.param({"a\x00": 1}, "has text with a NUL or half a character", id="a NUL in a key"),
            pytest.param(10**5000, "more digits than Python writes", id="a number Python can not write"),
        ],
    )
    def test_refuses_what_plain_json_can_not_hold(self, value, problem):
        with pytest.raises(NotPlainJSON) as caught:
            check_json("payload", value)

        assert caught.value.field == "payload"
        assert str(caught.value).startswith("payload: ")
        assert problem in caught.value.problem

    @pytest.mark.parametrize(
        ("value", "place"),
        [
            ({"a": [0, {"b": (1,)}]}, "at ['a'][1]['b']"),
            ([1, [2, {3}]], "at [1][1]"),
            ({"a": {"b": {2: 3}}}, "at ['a']['b']"),
            ({"a": float("nan")}, "at ['a']"),
            ({"a": ["\x00"]}, "at ['a'][0]"),
        ],
    )
    def test_names_the_place_inside_the_value(self, value, place):
        with pytest.raises(NotPlainJSON) as caught:
            check_json("payload", value)

        assert place in caught.value.problem

    @pytest.mark.parametrize("nested", [in_lists, in_dicts])
    def test_takes_as_many_levels_as_allowed_and_no_more(self, nested):
        check_json("payload", nested(MAX_DEPTH))

        with pytest.raises(NotPlainJSON, match=f"deeper than {MAX_DEPTH} levels"):
            check_json("payload", nested(MAX_DEPTH + 1))

    def test_refuses_what_contains_itself(self):
        value = {}
        value["self"] = value

        with pytest.raises(NotPlainJSON, match="nested deeper"):
            check_json("payload", value)

    def test_takes_as_many_bytes_as_allowed_and_no_more(self):
        """The quotes count, too."""
        check_json("result", "x" * (MAX_BYTES - 2))

        with pytest.raises(PayloadTooLarge) as caught:
            check_json("result", "x" * (MAX_BYTES - 1))

        assert (caught.value.field, caught.value.size, caught.value.limit) == ("result", MAX_BYTES + 1, MAX_BYTES)
        assert "65,537 bytes" in str(caught.value)

    def test_counts_bytes_and_not_characters(self):
        text = "ë" * (MAX_BYTES // 2)

        with pytest.raises(PayloadTooLarge):
            check_json("result", text)

    def test_changes_nothing(self):
        value = {"a": [1, {"b": "c"}]}

        check_json("payload", value)

        assert value == {"a": [1, {"b": "c"}]}


class TestJsonText:
    def test_is_as_people_write_it(self):
        assert json_text("result", {"Größe": [1, None]}) == '{"Größe": [1, null]}'

    def test_counts_bytes_and_not_characters(self):
        """Four bytes each: so many characters fit, and with one more of them none does."""
        fitting = "😀" * ((MAX_BYTES - 2) // 4)

        assert len(json_text("result", fitting).encode()) <= MAX_BYTES
        with pytest.raises(PayloadTooLarge):
            json_text("result", fitting + "😀")

    def test_refuses_what_is_no_json(self):
        with pytest.raises(NotPlainJSON):
            json_text("result", (1, 2))


class TestSameJson:
    @pytest.mark.parametrize(
        ("one", "other"), [(1e23, 10**23), (1, 1.0), (-0.0, 0), ({"a": 1, "b": [2]}, {"b": [2.0], "a": 1})]
    )
    def test_goes_by_the_value_of_numbers(self, one, other):
        assert same_json(one, other)

    @pytest.mark.parametrize(
        ("one", "other"), [(1, True), (0, False), (2**53 + 1, 2.0**53), (1, "1"), ([1], 1), ([], {}), (None, False)]
    )
    def test_tells_apart_what_json_does(self, one, other):
        assert not same_json(one, other)
