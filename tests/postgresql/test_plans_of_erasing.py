"""Erasing: the steps of others are not read, however many there are."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection

from tests.postgresql.plans import plans_made_by
from tests.testapp.models import Order
from timeline import Timeline, step, task
from timeline.features.maintenance.erase import erase
from timeline.ids import uuid7
from timeline.lifecycle import Reason
from timeline.models import StepKind, StepRecord, ref_of
from timeline.shortcuts import redrive, schedule
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db


class Care(Timeline):
    entity = "testapp.Order"

    @step(atomic=False)
    def look_up(self, order):
        return "ada"

    @task(atomic=False)
    def greet(self, order):
        self.look_up(order)
        if self.task.revision == 1:
            raise ValueError


@pytest.fixture
def order(clock):
    """Whose task was run again by hand, so that its steps are those of an earlier row; among the steps of others."""
    with only_timelines(Care):
        StepRecord.objects.bulk_create(
            StepRecord(
                origin=uuid7(),
                name="look_up",
                attempt=1,
                kind=StepKind.DONE,
                recorded_at=clock.now,
                seconds=0.1,
                digest="d",
                result="grace",
            )
            for _ in range(5000)
        )
        order = Order.objects.create()
        row = schedule("care.greet", order, at=clock.now).task
        with clock.failing():
            clock.advance(days=9)
            redrive(row, reason="again")
            clock.advance(minutes=1)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE timeline_step")
        yield order


def test_reads_no_steps_of_others(order, clock):
    ours = StepRecord.objects.exclude(result="grace")
    assert ours.get().result == "ada"
    reason = Reason.operator("she asked for it", "eva")
    later = clock.now + timedelta(minutes=1)

    plans = plans_made_by(
        lambda: erase(ref=ref_of(order), reason=reason, now=later, using="default"), about="timeline_step"
    )

    assert plans
    assert not [plan for plan in plans if "Seq Scan on timeline_step" in plan]
    assert ours.get().result is None
