from __future__ import annotations

from datetime import timedelta

import pytest

from tests.testapp.models import Order
from timeline import Limit, Timeline, task
from timeline.features.limits.places import LimitedKind, competing, limited_kinds
from timeline.shortcuts import hold, schedule
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db

ALL = ["bank.advice", "bank.alone", "bank.by_note", "bank.refund", "bank.urgent"]


class Bank(Timeline):
    entity = "testapp.Order"

    @task(limit=Limit(1, "bank"))
    def advice(self, order): ...

    @task(limit=Limit(2, "bank"))
    def refund(self, order): ...

    @task(limit=Limit(1, "bank"))
    def urgent(self, order): ...

    @task(limit=Limit(1, "bank", by="note"))
    def by_note(self, order): ...

    @task(limit=3)
    def alone(self, order): ...


@pytest.fixture(autouse=True)
def known():
    with only_timelines(Bank):
        yield


@pytest.fixture
def due(now):
    def made(*names):
        for name in names:
            schedule(f"bank.{name}", Order.objects.create(), at=now - timedelta(seconds=1))

    return made


class TestLimitedKinds:
    def test_are_those_for_which_somebody_waits_each_with_those_that_compete_with_it(self, due):
        due("advice", "refund", "by_note", "alone")

        assert sorted(limited_kinds(ALL, using="default")) == [
            LimitedKind("bank.advice", 1, others=(("bank.refund", 2),)),
            LimitedKind("bank.alone", 3),
            LimitedKind("bank.by_note", 1),
            LimitedKind("bank.refund", 2, others=(("bank.advice", 1),)),
        ]

    def test_are_none_that_are_on_hold_nor_does_one_compete_that_is(self, due):
        due("advice", "refund")
        hold(task="bank.refund", reason="x")

        assert limited_kinds(ALL, using="default") == [LimitedKind("bank.advice", 1)]

    def test_cost_no_statement_where_there_is_no_limit(self, django_assert_num_queries):
        with django_assert_num_queries(0):
            assert limited_kinds([], using="default") == []


class TestCompeting:
    def test_is_among_those_given(self):
        kinds = [LimitedKind("bank.advice", 1, others=(("bank.refund", 2),)), LimitedKind("bank.urgent", 1)]

        assert [kind.others for kind in competing(kinds)] == [(("bank.urgent", 1),), (("bank.advice", 1),)]
