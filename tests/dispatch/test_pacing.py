"""Pace: how long handlers of a kind take is kept in one row a kind."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from timeline.dispatch.worker_signs import keep_paces
from timeline.models import Pace

pytestmark = pytest.mark.django_db


class TestKeepPaces:
    def test_keeps_one_row_a_kind_by_the_real_clock(self, clock, now):
        """Story time may stand anywhere."""
        clock.set(now + timedelta(days=900))

        keep_paces({"a.one": 0.5, "b.two": 2.0}, using="default")

        assert dict(Pace.objects.values_list("task_key", "seconds")) == {"a.one": 0.5, "b.two": 2.0}
        assert all(abs(pace.measured_at - datetime.now(UTC)) < timedelta(minutes=1) for pace in Pace.objects.all())

    def test_takes_the_last_word_and_leaves_other_kinds(self, now):
        Pace.objects.create(task_key="a.one", seconds=9.0, measured_at=now)
        Pace.objects.create(task_key="b.two", seconds=9.0, measured_at=now)

        keep_paces({"a.one": 0.5}, using="default")

        assert dict(Pace.objects.values_list("task_key", "seconds")) == {"a.one": 0.5, "b.two": 9.0}
        assert Pace.objects.get(task_key="a.one").measured_at > now
        assert Pace.objects.get(task_key="b.two").measured_at == now

    def test_is_one_statement_for_any_number(self, django_assert_num_queries):
        with django_assert_num_queries(1):
            keep_paces({f"a.{number}": 0.1 for number in range(50)}, using="default")

        assert Pace.objects.count() == 50
