"""``@task`` and what it makes of a method."""

from datetime import timedelta

import pytest
from django.db.models import Q

from timeline.definition import Retry, Task, Timeline, task
from timeline.timing import after, at, before


def is_paid(order):
    return order.paid


def handler(self, order):
    """What it does."""
    return self, order


class Shipping(Timeline):
    entity = "testapp.Order"

    @task(before("ships_at", days=2))
    def pack(self, order):
        """Put it in a box."""
        return "packed", order

    @task()
    def recall(self, order):
        return "recalled"


class TestTask:
    def test_makes_a_task_of_a_method(self):
        made = task(after(days=1))(handler)

        assert isinstance(made, Task)
        assert (made.name, made.method, made.when) == ("handler", handler, after(days=1))
        assert made.__doc__ == "What it does."

    def test_has_defaults_for_all_it_is_not_told(self):
        options = task()(handler).options

        assert options.when is None
        assert (options.only_if, options.unless, options.atomic) == (None, None, True)
        assert (options.retry, options.expires, options.priority, options.queue) == (Retry(), None, 0, "default")

    def test_keeps_what_it_is_told(self):
        retry = Retry(max_attempts=2)

        options = task(
            at("ships_at"),
            only_if=is_paid,
            unless=Q(note="x"),
            atomic=False,
            retry=retry,
            expires=timedelta(days=1),
            priority=-5,
            queue="mail",
        )(handler).options

        assert (options.when, options.only_if, options.unless) == (at("ships_at"), is_paid, Q(note="x"))
        assert (options.atomic, options.retry, options.expires) == (False, retry, timedelta(days=1))
        assert (options.priority, options.queue) == (-5, "mail")

    def test_stands_for_itself_on_the_class(self):
        assert isinstance(Shipping.pack, Task)
        assert Shipping.pack is Shipping.definition.tasks["pack"]

    def test_is_the_method_on_an_instance(self):
        order = object()

        assert Shipping().pack(order) == ("packed", order)
        assert Shipping().recall(order) == "recalled"

    def test_says_its_name_and_time(self):
        assert repr(Shipping.pack) == "<task pack: 2 days before ships_at>"
        assert repr(Shipping.recall) == "<task recall: on demand>"


class TestFingerprint:
    @pytest.mark.parametrize(
        "other",
        [
            task(after(days=26)),
            task(after(months=1)),
            task(after(timedelta(days=25))),
            task(after("ships_at", days=25)),
            task(before("ships_at", days=25)),
            task(after(task()(handler), days=25)),
            task(after(days=25), expires=timedelta(days=1)),
            task(),
        ],
    )
    def test_changes_with_the_schedule(self, other):
        assert other(handler).fingerprint != task(after(days=25))(handler).fingerprint

    @pytest.mark.parametrize(
        "same",
        [
            task(after(days=25)),
            task(after(weeks=3, days=4)),
            task(after(days=25), only_if=is_paid),
            task(after(days=25), unless=Q(paid=True)),
            task(after(days=25), atomic=False),
            task(after(days=25), retry=Retry(max_attempts=1)),
            task(after(days=25), priority=3),
            task(after(days=25), queue="mail"),
        ],
    )
    def test_stays_when_anything_else_changes(self, same):
        assert same(handler).fingerprint == task(after(days=25))(handler).fingerprint

    def test_stays_with_another_method(self):
        assert task(after(days=25))(is_paid).fingerprint == task(after(days=25))(handler).fingerprint

    @pytest.mark.parametrize(
        ("declared", "fingerprint"),
        [(task(after(days=25))(handler), "f70397d6d855b824"), (task()(handler), "565d240f5343e625")],
    )
    def test_is_the_same_from_one_release_to_the_next(self, declared, fingerprint):
        """Rows keep it."""
        assert declared.fingerprint == fingerprint
