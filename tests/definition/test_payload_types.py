"""Types of payloads: plain JSON is of a dataclass or a TypedDict, or an error names the place."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Any, Literal, NotRequired, TypedDict

import pytest

from timeline.definition.payload_types import check_payload, type_problem
from timeline.exceptions import InvalidInput


class Colour(StrEnum):
    RED = "red"


class Line(TypedDict):
    sku: str
    count: NotRequired[int]


@dataclass
class Given:
    code_ref: str
    price: float = 0
    by: str | None = None
    how: Literal["mail", "sms"] = "sms"
    lines: list[Line] = field(default_factory=list)
    notes: dict[str, int] = field(default_factory=dict)
    colour: Colour = Colour.RED
    extra: Any = None
    made: int = field(default=0, init=False)


@dataclass
class Dated:
    at: date


@dataclass
class Torn:
    at: Nowhere  # noqa: F821 (that is the case)


class TestCheckPayload:
    @pytest.mark.parametrize(
        "payload",
        [
            {"code_ref": "a"},
            {"code_ref": "a", "price": 1, "by": None, "how": "mail", "colour": "red", "extra": [1]},
            {"code_ref": Colour.RED, "price": 1.5, "by": "ada", "notes": {"a": 1}},
            {"code_ref": "a", "lines": [{"sku": "x"}, {"sku": "y", "count": 2}]},
        ],
    )
    def test_takes_what_fits(self, payload):
        check_payload(payload, Given, event="otp.given")

    @pytest.mark.parametrize(
        ("payload", "said"),
        [
            ({}, "payload lacks 'code_ref'"),
            ({"code_ref": 1}, "code_ref is 1, not str"),
            ({"code_ref": None}, "code_ref is None, not str"),
            ({"code_ref": "a", "cod": 1}, "has 'cod', which is not declared"),
            ({"code_ref": "a", "made": 1}, "has 'made', which is not declared"),
            ({"code_ref": "a", "price": "1"}, "price is '1', not float"),
            ({"code_ref": "a", "price": True}, "price is True, not float"),
            ({"code_ref": "a", "by": 1}, "by is 1, not "),
            ({"code_ref": "a", "how": "fax"}, "how is 'fax', not one of 'mail', 'sms'"),
            ({"code_ref": "a", "lines": {}}, "lines is {}, not a list"),
            ({"code_ref": "a", "lines": [{"sku": "x"}, {"count": 2}]}, r"lines\[1\] lacks 'sku'"),
            ({"code_ref": "a", "lines": [{"sku": "x", "count": True}]}, r"lines\[0\].count is True, not int"),
            ({"code_ref": "a", "lines": ["x"]}, r"lines\[0\] is 'x', not a dict"),
            ({"code_ref": "a", "notes": {"a": "b"}}, "notes.a is 'b', not int"),
            ({"code_ref": "a", "notes": []}, r"notes is \[\], not a dict"),
            ({"code_ref": "a", "colour": "blue"}, "colour is 'blue', not a value of Colour"),
        ],
    )
    def test_names_the_place_of_what_does_not(self, payload, said):
        with pytest.raises(InvalidInput, match=f"payload: does not fit otp.given: .*{said}.*Give what Given declares"):
            check_payload(payload, Given, event="otp.given")


class TestTypeProblem:
    @pytest.mark.parametrize("declared", [Given, Line])
    def test_is_none_of_what_json_has(self, declared):
        assert type_problem(declared) == ""

    @pytest.mark.parametrize(
        ("declared", "said"),
        [(dict, "<class 'dict'>"), ("Given", "'Given'"), (Dated, "datetime.date"), (Torn, "Nowhere"), (None, "None")],
    )
    def test_names_what_json_has_not(self, declared, said):
        assert said in type_problem(declared)
