"""Sleep in a handler declared with ``async def``."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tests.engine import conftest as engine
from timeline import Timeline, after, step, task
from timeline.features.waits.reading import wait_of
from timeline.lifecycle import State
from timeline.models import StepRecord

declared = engine.declared  # Fixtures.
again = engine.again


def sleeping(handler):
    class Job(Timeline):
        entity = "testapp.Order"

        @task(after(days=1), atomic=False)
        async def work(self, order):
            return await handler(self)

        @step(atomic=False)
        async def ask(self, name):
            return name

    return Job


class TestAnAsyncHandler:
    def test_rests_and_goes_on(self, declared, run_at, again, later):
        async def handler(job):
            await job.ask("ada")
            await job.sleep(days=2)
            return await job.ask.keyed("2")("bob")

        row = declared(sleeping(handler))
        resting = run_at(row, later)

        assert resting.reason_code == "waiting"
        assert resting.scheduled_at >= later + timedelta(days=2)
        assert again(row).state == State.COMPLETED
        assert StepRecord.objects.count() == 3

    def test_sleeps_one_after_the_other_also_where_it_gathers_them(self, declared, run_at, again, later):
        async def handler(job):
            await asyncio.gather(job.sleep(hours=1, name="a"), job.sleep(hours=2, name="b"))

        row = declared(sleeping(handler))
        states = [run_at(row, later).state]
        while states[-1] == State.RETRYABLE:
            states.append(again(row).state)

        assert states[-1] == State.COMPLETED
        assert set(StepRecord.objects.values_list("name", flat=True)) == {"(sleep) a", "(sleep) b"}

    def test_shows_the_event_where_it_waits_beside_a_sleep(self, declared, run_at, later):
        async def handler(job):
            await asyncio.gather(job.wait_for("code.given", within=timedelta(days=1)), job.sleep(days=2))

        resting = run_at(declared(sleeping(handler)), later)

        assert StepRecord.objects.filter(name="(sleep) 1", kind="wait").exists()
        assert wait_of(resting, using="default").events == ["code.given"]

    def test_is_awaited_in_a_unit_test(self):
        async def handler(job):
            await job.sleep(days=2)
            return "done"

        assert asyncio.run(sleeping(handler)().work(None)) == "done"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"days": 0}, "sleep: is for no time, and until= is missing or None. Say how long"),
        ({"until": None}, "sleep: is for no time, and until= is missing or None. Say how long"),
        ({"days": -1}, "sleep: is for a negative time, or too long. Say how long"),
        ({"days": 4000}, "sleep: is for a negative time, or too long. Say how long"),
        ({"until": "2026-03-01"}, "until: is no datetime. Give an aware one"),
    ],
    ids=str,
)
def test_no_time_fails_the_attempt(declared, run_at, later, given, said):
    async def handler(job):
        await job.sleep(**given)

    assert said in run_at(declared(sleeping(handler)), later).error
