"""Fingerprints of code and of what steps are given."""

import os
import subprocess
import sys
from datetime import date
from decimal import Decimal
from functools import wraps
from uuid import UUID

import pytest

from tests.testapp.models import Order
from timeline import Timeline, step, task
from timeline.features.steps.declaration import digest_of, kept


def logged(method):
    @wraps(method)
    def wrapper(self):
        return method(self)

    return wrapper


def unnamed(method):
    def wrapper(self):
        return [method(self)]

    return wrapper


def declare(before=None, **body):
    def work(self):
        return self.upload()

    @step
    def upload(self): ...

    return type("Job", (Timeline, *(before or ())), {"work": task(atomic=False)(work), "upload": upload, **body})


def one(self):
    return self.upload()


def other(self):
    return [self.upload(), 2]


class Mixin:
    def part(self):
        return 1


class OtherMixin:
    def part(self):
        return 2


class TestCode:
    @pytest.mark.parametrize(
        ("first", "second"),
        [
            (one, other),
            (logged(one), logged(other)),
            (unnamed(one), unnamed(other)),
            (property(one), property(other)),
            (staticmethod(one), staticmethod(other)),
            (classmethod(one), classmethod(other)),
            (lambda self, size=1: size, lambda self, size=2: size),
            (lambda self, *, size=1: size, lambda self, *, size=2: size),
            (1, 2),
        ],
    )
    def test_differs_where_what_takes_steps_does(self, first, second):
        assert declare(part=first).definition.code != declare(part=second).definition.code
        assert declare(part=first).definition.code == declare(part=first).definition.code

    def test_differs_where_a_mixin_does(self):
        assert declare((Mixin,)).definition.code != declare((OtherMixin,)).definition.code

    def test_is_the_same_whatever_a_step_does(self):
        first, second = (declare(send=step(named("send", act))).definition.code for act in (one, other))

        assert first == second

    def test_is_the_same_in_each_process(self):
        """Sets of constants have another order in each."""
        script = (
            "import django; django.setup()\n"
            "from timeline import Timeline, step, task\n"
            "class Job(Timeline):\n"
            "    @task(atomic=False)\n"
            "    def work(self): return self.now in {'a', 'b', 'c', 'd'} or self.upload(({'x', 'y', 'z'},))\n"
            "    @step\n"
            "    def upload(self, what): ...\n"
            "print(Job.definition.code)\n"
        )
        said = {
            subprocess.run(
                [sys.executable, "-c", script],
                env={**os.environ, "PYTHONHASHSEED": str(seed), "DJANGO_SETTINGS_MODULE": "tests.settings"},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            for seed in (1, 2, 3)
        }

        assert len(said) == 1


def named(name, function):
    def method(self):
        return function(self)

    method.__name__ = name
    return method


class TestKept:
    def test_is_short(self):
        assert len(kept("0123456789abcdef")) == 5

    def test_differs_where_the_code_does(self):
        codes = {f"{number << shift:016x}" for shift in (32, 46, 62) for number in (0, 1)}

        assert len({kept(code) for code in codes}) == len(codes)


class TestDigest:
    @pytest.mark.parametrize(
        ("first", "second"),
        [
            (1, 2),
            ("1", 1),
            (Decimal(5), Decimal(6)),
            (date(2026, 1, 1), date(2026, 1, 2)),
            (UUID(int=1), UUID(int=2)),
            (b"a", b"b"),
            (Order(pk=1), Order(pk=2)),
            ({1: "a", "b": 2}, {1: "a", "b": 3}),
        ],
    )
    def test_differs_where_what_is_given_does(self, first, second):
        assert digest_of({"what": first}) != digest_of({"what": second})
        assert digest_of({"what": first}) == digest_of({"what": first})

    def test_is_of_an_entity_its_key(self):
        assert digest_of({"what": Order(pk=1, note="a")}) == digest_of({"what": Order(pk=1, note="b")})

    def test_does_not_tell_apart_what_has_no_text_of_its_own(self):
        assert digest_of({"what": object()}) == digest_of({"what": object()})
