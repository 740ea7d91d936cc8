"""Steps that are called where none can be taken are refused, each with the remedy."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import transaction

from tests.engine import conftest as engine
from timeline import Retry, Timeline, after, step, task
from timeline.lifecycle import State
from timeline.models import StepRecord

declared = engine.declared  # Fixtures.


class Calling(Timeline, abstract=True):
    """Each kind of handler makes a call, beside the steps that it may take."""

    entity = "testapp.Order"

    @task(after(days=1), atomic=False, retry=Retry(max_attempts=1))
    def work(self, order):
        return self.call()

    @task(atomic=True)
    def writes(self, order):
        return self.call()

    @task(atomic=False, bulk=2)
    def many(self, orders):
        return self.call()

    @task(atomic=False)
    async def side_by_side(self, order):
        return self.call()

    @step(atomic=False)
    def upload(self):
        return "there"

    @step(atomic=False)
    async def fetch(self):
        return "fetched"

    @step(atomic=False)
    def outer(self):
        return self.upload()


def handler_of(made):
    """A timeline whose handlers make a call."""

    class Job(Calling):
        def call(self):
            return made(self)

    return Job


def in_transaction(job):
    with transaction.atomic():
        job.upload()


def in_thread(job):
    with ThreadPoolExecutor(max_workers=1) as other:
        other.submit(job.upload).result()


def twice(job):
    job.upload()
    job.upload()


class TestWhereAStepIsRefused:
    @pytest.mark.parametrize(
        ("call", "said"),
        [
            (twice, "upload is called twice in one attempt. Tell the calls apart by a key: self.upload.keyed(…)."),
            (in_transaction, "upload is called in a transaction"),
            (in_thread, "upload is called in another thread"),
            (lambda job: job.outer(), "upload is called in another step"),
            (lambda job: job.fetch(), "fetch and the handler are not both declared with async def"),
            (lambda job: job.upload.keyed("\ud800")(), "key: "),
            (lambda job: job.upload.keyed("x" * 91)(), "Give text of at most 90 characters"),
        ],
    )
    def test_in_a_plain_handler(self, declared, run_at, later, call, said):
        done = run_at(declared(handler_of(call)), later)

        assert done.state == State.DISCARDED
        assert said in done.reason + done.error

    @pytest.mark.parametrize(
        ("kind", "said"),
        [
            ("writes", "upload is called in an atomic handler"),
            ("many", "upload is called for many entities at once"),
            ("side_by_side", "upload and the handler are not both declared with async def"),
        ],
    )
    def test_in_other_handlers(self, declared, run_at, now, order, schedule_at, kind, said):
        declared(handler_of(lambda job: job.upload()))

        done = run_at(schedule_at(f"job.{kind}", order, now, now).task, now)

        assert done.state == State.RETRYABLE
        assert said in done.reason + done.error
        assert not StepRecord.objects.exists()
