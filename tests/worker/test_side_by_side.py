"""Handlers that wait side by side: one that takes long keeps nobody from a slot that is free."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.testapp.models import Order
from tests.worker.test_runner_threads import work_until_done
from timeline import Timeline, task
from timeline.definition.handlers import SIDE_BY_SIDE
from timeline.dispatch.claim import claim
from timeline.dispatch.poll import stage
from timeline.models import ScheduledTask
from timeline.shortcuts import aschedule, schedule
from timeline.testing import only_timelines
from timeline.worker import Worker
from timeline.worker.batch import run_batch
from timeline.worker.heartbeat import Heartbeat

pytestmark = pytest.mark.django_db(transaction=True)


async def others_are_done(job):
    others = ScheduledTask.objects.exclude(pk=job.task.pk)
    for _ in range(2400):
        if not await others.open().aexists():
            return True
        await asyncio.sleep(0.05)
    return False


class Calls(Timeline):
    entity = "testapp.Order"

    @task(atomic=False)
    async def call(self, order) -> bool:
        return await others_are_done(self) if order.note == "long" else True

    @task(atomic=False)
    async def call_and_plan(self, order) -> bool:
        """Has one more made due while it runs."""
        if order.note != "long":
            return True
        await asyncio.sleep(0.2)
        await aschedule("calls.call_and_plan", await Order.objects.acreate(), at=timezone.now())
        return await others_are_done(self)

    @task(atomic=False)
    def other(self, order) -> None:
        pass


@pytest.fixture(autouse=True)
def _calls(settings):
    settings.TIMELINE = {"POLL_INTERVAL": timedelta(milliseconds=100)}
    with only_timelines(Calls):
        yield


@pytest.fixture
def due(db):
    """Have so many of a kind due, the first of which takes until all others are done."""

    def make(kind, count):
        at = timezone.now() - timedelta(seconds=count)
        for number in range(count):
            order = Order.objects.create(note="" if number else "long")
            schedule(f"calls.{kind}", order, at=at + timedelta(seconds=number))

    return make


def results():
    return set(ScheduledTask.objects.values_list("state", "result", "attempt"))


class TestASlotThatIsFree:
    def test_is_taken_while_another_takes_long(self, due):
        """More than there are slots for: those behind the first hundred do not wait for the longest of them."""
        due("call", SIDE_BY_SIDE + 40)

        work_until_done(Worker("default"))

        assert results() == {("completed", True, 1)}

    def test_is_taken_by_what_is_due_later(self, due):
        due("call_and_plan", 2)

        work_until_done(Worker("default"))

        assert results() == {("completed", True, 1)}

    @pytest.mark.only_postgresql
    def test_is_taken_in_the_turn_of_a_message(self, due, settings):
        settings.TIMELINE = {"POLL_INTERVAL": timedelta(seconds=6)}
        due("call", 1)
        now = timezone.now()
        stage(now=now, using="default")
        [batch] = claim(now=now, using="default")
        for _ in range(3):
            schedule("calls.call", Order.objects.create(), at=timezone.now())
        stage(now=timezone.now(), using="default")

        with Heartbeat("default", stopping=bool) as watch:
            run_batch(batch, watch=watch, using="default", worker="w")

        assert results() == {("completed", True, 1)}
