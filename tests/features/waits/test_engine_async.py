"""Wait for an event in a handler declared with ``async def``."""

import asyncio
from datetime import timedelta

import pytest

from tests.engine import conftest as engine
from tests.testapp.models import Badge
from timeline import Timeline, after, step, task
from timeline.dispatch.poll import stage
from timeline.lifecycle import State
from timeline.models import ScheduledTask

declared = engine.declared  # Fixtures.

TEN_MINUTES = timedelta(minutes=10)


def asking(handler):
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
    def test_rests_and_is_waked(self, declared, run_at, later, order, emit_at):
        async def handler(job):
            await job.ask("ada")
            event = await job.wait_for("otp.given", within=TEN_MINUTES)
            return [event.payload, job.awaited == event]

        row = declared(asking(handler))
        assert run_at(row, later).reason_code == "waiting"
        emit_at("otp.given", order, later + timedelta(minutes=1), payload={"n": 1})

        done = run_at(row, later + timedelta(minutes=1))

        assert (done.state, done.result) == (State.COMPLETED, [{"n": 1}, True])

    def test_waits_for_another_entity(self, declared, run_at, later, emit_at):
        """Of a family whose names are found by a query, so that this is asked beside the loop."""
        badge = Badge.objects.create()

        async def handler(job):
            event = await job.wait_for("badge.shown", within=TEN_MINUTES, of=badge)
            return event.payload

        row = declared(asking(handler))
        assert run_at(row, later).reason_code == "waiting"
        emit_at("badge.shown", badge, later, payload={"n": 1})
        stage(now=later, using="default")

        assert run_at(row, later).result == {"n": 1}

    def test_goes_on_with_nothing_when_the_time_has_run_out(self, declared, run_at, later):
        async def handler(job):
            return await job.wait_for("otp.given", within=TEN_MINUTES) is None

        row = declared(asking(handler))
        until = run_at(row, later).scheduled_at

        assert run_at(row, until).result is True

    @pytest.mark.parametrize("beside", ["gather", "group"])
    def test_waits_beside_a_step(self, declared, run_at, later, beside):
        async def handler(job):
            if beside == "gather":
                await asyncio.gather(job.ask("ada"), job.wait_for("otp.given", within=TEN_MINUTES))
            async with asyncio.TaskGroup() as group:
                group.create_task(job.ask.keyed("2")("ada"))
                group.create_task(job.wait_for("otp.given", within=TEN_MINUTES))

        row = declared(asking(handler))

        assert run_at(row, later).reason_code == "waiting"
        assert ScheduledTask.objects.get().failures == 0

    def test_rests_though_it_caught_that(self, declared, run_at, later):
        async def handler(job):
            try:
                await job.wait_for("otp.given", within=TEN_MINUTES)
            except BaseException:  # noqa: BLE001 (what it is about)
                return "caught"

        assert run_at(declared(asking(handler)), later).reason_code == "waiting"

    def test_is_refused_in_a_step(self, declared, run_at, later):
        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=False)
            async def work(self, order):
                await self.ask()

            @step(atomic=False)
            async def ask(self):
                await self.wait_for("otp.given", within=TEN_MINUTES)

        assert "InvalidInput" in run_at(declared(Job), later).error
