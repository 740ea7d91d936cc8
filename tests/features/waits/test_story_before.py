"""The event that comes before anybody waits for it: what docs/how-to/waits.md says of which events count."""

from __future__ import annotations

from datetime import timedelta

import pytest

from timeline import Timeline, after, step, task, wait_for
from timeline.models import ScheduledTask
from timeline.shortcuts import emit
from timeline.testing import only_timelines


class Quick(Timeline):
    """Who answers before the question has come to its end."""

    entity = "testapp.Order"
    starts_on = "code.wanted"

    @task(after(), atomic=False)
    def sign_in(self, order):
        self.send_code(order.pk)
        given = self.wait_for("code.given", within=timedelta(minutes=10))
        return given.payload["code"] if given else "nothing"

    @step(atomic=False)
    def send_code(self, order_id):
        if self.event.payload.get("answers_at_once"):
            emit("code.given", self.task.entity_ref, payload={"code": "1234"})

    @task(wait_for("order.paid", within=timedelta(days=3)))
    def settle(self, order):
        return self.awaited.key if self.awaited else "nothing"


@pytest.fixture(autouse=True)
def _quick(clock):
    with only_timelines(Quick):
        yield


def result(name):
    return ScheduledTask.objects.get(task_key=f"quick.{name}").result


class TestTheEventBeforeTheWait:
    def test_counts_where_the_last_step_asked_for_it(self, order, clock):
        emit("code.wanted", order, payload={"answers_at_once": True})

        clock.run_due()

        assert result("sign_in") == "1234"

    def test_of_before_the_run_does_not_count(self, order, clock):
        emit("code.given", order, payload={"code": "of yesterday"})
        clock.advance(days=1)
        emit("code.wanted", order)

        clock.advance(minutes=11)

        assert result("sign_in") == "nothing"

    def test_counts_where_the_schedule_waits_from_the_start_on(self, order, clock):
        emit("code.wanted", order)
        emit("order.paid", order, key="invoice 7")

        clock.run_due()

        assert result("settle") == "invoice 7"
