"""Steps of async handlers: side by side, and waited for."""

import asyncio

import pytest

from tests.engine import conftest as engine
from timeline import Retry, Timeline, after, step, task
from timeline.lifecycle import State
from timeline.models import StepRecord

again, declared, journal = engine.again, engine.declared, engine.journal  # Fixtures.


class TestAsync:
    def job(self, journal):
        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=False)
            async def work(self, order):
                one, two = await asyncio.gather(self.fetch.keyed("a")("a"), self.fetch.keyed("b")("b"))
                return [one, two, await self.send()]

            @step(atomic=False)
            async def fetch(self, what):
                await asyncio.sleep(0)
                journal.do(what)
                return self.step.name

            @step(atomic=False)
            async def send(self):
                return journal.do("send")

        return Job

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.parametrize("fails", ["a", "b", "send"])
    def test_is_not_done_again(self, declared, run_at, later, again, journal, fails):
        row = declared(self.job(journal))
        journal.fails = [fails]

        assert run_at(row, later).state == State.RETRYABLE
        done = again(row)

        assert (done.state, done.result) == (State.COMPLETED, ["fetch#a", "fetch#b", "send"])
        assert journal.done.count(fails) == 2
        assert StepRecord.objects.count() == 3

    def failing(self, journal, how):
        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=False, retry=Retry(max_attempts=1))
            async def work(self, order):
                await how(self)

            @step(atomic=False, once=True)
            async def pay(self):
                journal.do("pay")

            @step(atomic=False)
            async def tell(self):
                await asyncio.sleep(0.05)
                journal.do("tell")

            @step(atomic=False, retry=Retry(max_attempts=4))
            async def fetch(self):
                raise journal.error("fetch")

        return Job

    @pytest.mark.django_db(transaction=True)
    def test_rests_out_of_a_group_and_lets_its_neighbours_end(self, declared, run_at, later, again, journal):
        async def grouped(job):
            async with asyncio.TaskGroup() as group:
                group.create_task(job.pay())

        row = declared(self.failing(journal, grouped))
        journal.fails = ["pay"]

        assert run_at(row, later).reason_code == "in_doubt"
        assert again(row).reason_code == "in_doubt"
        assert journal.done == ["pay"]

    @pytest.mark.django_db(transaction=True)
    def test_fails_by_itself_out_of_a_group(self, declared, run_at, later, journal):
        async def grouped(job):
            async with asyncio.TaskGroup() as group:
                group.create_task(job.fetch())

        journal.fails = ["fetch"]
        failed = run_at(declared(self.failing(journal, grouped)), later)

        assert (failed.state, failed.reason) == (State.RETRYABLE, "fetch is down")

    @pytest.mark.django_db(transaction=True)
    def test_is_waited_for_where_another_one_failed(self, declared, run_at, later, journal):
        async def gathered(job):
            await asyncio.gather(job.fetch(), job.tell())

        journal.fails = ["fetch"]
        failed = run_at(declared(self.failing(journal, gathered)), later)

        assert failed.state == State.RETRYABLE
        assert journal.done == ["tell"]
        assert list(StepRecord.objects.values_list("name", flat=True)) == ["tell"]

    @pytest.mark.django_db(transaction=True)
    def test_begins_none_once_the_handler_has_ended(self, declared, run_at, later, journal):
        async def early(job):
            job.later = asyncio.get_running_loop().create_task(self.much_later(job))

        done = run_at(declared(self.failing(journal, early)), later)

        assert done.state == State.COMPLETED
        assert journal.done == []

    async def much_later(self, job):
        await asyncio.sleep(0.05)
        await job.tell()
