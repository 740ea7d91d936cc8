"""What failures have in common that are one and the same."""

from __future__ import annotations

import uuid

import pytest

from timeline.engine.failures import fingerprint
from timeline.likeness import MAX_READ, constant


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def caught(raising, *args):
    try:
        raising(*args)
    except Exception as error:  # noqa: BLE001
        return error
    raise AssertionError("nothing was raised")


def refuse(message="refused", kind=ValueError):
    raise kind(message)


def refuse_elsewhere(message="refused"):
    raise ValueError(message)


def by_way_of_a_library():
    return uuid.UUID("no such thing")


class TestConstant:
    @pytest.mark.parametrize(
        ("message", "expected"),
        [
            ("order 17 of 4.5 EUR", "order # of # EUR"),
            ("no user 0198b7a2-7c1e-7d3f-8a11-5b1c9a0d2e4f here", "no user # here"),
            ("object at 0x7f33aa00", "object at #"),
            ("can't open 'a b c' or \"d e\"", "can't open # or #"),
            ("no «x y» and „z“ and `q`", "no # and # and #"),
            ("cannot read /srv/app/17/a.pdf: gone", "cannot read #: gone"),
            ("cannot read C:\\temp\\a.pdf", "cannot read #"),
            ("refused for ann@example.com: unknown", "refused for #: unknown"),
            ("either/or stays", "either/or stays"),
            ("two\n  lines\tand tabs", "two lines and tabs"),
            ("", ""),
        ],
    )
    def test_leaves_out_what_differs_from_time_to_time(self, message, expected):
        assert constant(message) == expected

    @pytest.mark.parametrize("text", ["'" * 9_000, "a" * 9_000, "/a" * 9_000, "\x00\ud800 '", "1." * 9_000])
    def test_takes_any_text(self, text):
        assert len(constant(text)) <= MAX_READ


class TestFingerprint:
    def test_is_the_same_for_the_same_failure_of_other_rows(self):
        first = fingerprint("trial.remind", caught(refuse, "order 17 of 'Ann' refused"))

        assert first == fingerprint("trial.remind", caught(refuse, "order 18 of 'Bob' refused"))
        assert len(first) == 16

    def test_is_another_one_for_another_task_class_message_or_function(self):
        prints = {
            fingerprint("trial.remind", caught(refuse)),
            fingerprint("trial.expire", caught(refuse)),
            fingerprint("trial.remind", caught(refuse, "refused", LookupError)),
            fingerprint("trial.remind", caught(refuse, "forbidden")),
            fingerprint("trial.remind", caught(refuse_elsewhere)),
            fingerprint("trial.remind"),
            fingerprint("trial.remind", code="worker_lost"),
        }

        assert len(prints) == 7

    def test_tells_callers_of_the_same_library_apart(self):
        direct = caught(uuid.UUID, "no such thing")

        assert fingerprint("a.b", direct) != fingerprint("a.b", caught(by_way_of_a_library))

    def test_takes_an_exception_that_cannot_be_told(self):
        assert fingerprint("a.b", Unspeakable()) == fingerprint("a.b", Unspeakable())

    def test_takes_an_exception_that_was_never_raised(self):
        assert fingerprint("a.b", ValueError("x")) == fingerprint("a.b", ValueError("x"))

    def test_takes_recursion_wherever_it_ran_out(self):
        def one(depth):
            return other(depth + 1)

        def other(depth):
            return one(depth + 1)

        def begin(entry):
            return entry(0)

        assert fingerprint("a.b", caught(begin, one)) == fingerprint("a.b", caught(begin, other))

    def test_takes_a_group_by_its_different_members_in_any_order(self):
        one, two = caught(refuse, "order 1"), caught(refuse, "order x", KeyError)
        group = ExceptionGroup("several", [one, two])
        more = ExceptionGroup("several", [two, one, caught(refuse, "order 2")])
        nested = ExceptionGroup("several", [one])

        assert fingerprint("a.b", group) == fingerprint("a.b", more)
        assert fingerprint("a.b", group) != fingerprint("a.b", nested)
