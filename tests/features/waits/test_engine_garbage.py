"""What a wait leaves behind when its attempt has ended: nothing that only the collector of garbage would find."""

from datetime import timedelta

import pytest

from tests.engine import conftest as engine
from tests.engine.garbage import Seen, run_and_look
from timeline import Timeline, after, task
from timeline.lifecycle import State

declared = engine.declared  # Fixtures.

pytestmark = pytest.mark.django_db(transaction=True)  # Async handlers' statements come from another task of the loop.

TEN_MINUTES = timedelta(minutes=10)


def waiting(seen):
    class Job(Timeline):
        entity = "testapp.Order"

        @task(after(days=1), atomic=False)
        def work(self, order):
            seen.see(self, order)
            self.wait_for("otp.given", within=TEN_MINUTES)

    return Job


def waiting_async(seen):
    class Job(Timeline):
        entity = "testapp.Order"

        @task(after(days=1), atomic=False)
        async def work(self, order):
            seen.see(self, order)
            await self.wait_for("otp.given", within=TEN_MINUTES)

    return Job


@pytest.mark.parametrize("make", [waiting, waiting_async])
def test_a_context_and_its_task_go_when_the_task_waits_and_when_it_has_waited(declared, run_at, later, make):
    seen = Seen()
    row = declared(make(seen))

    runs = [run_and_look(row, at, run_at, seen) for at in (later, later + timedelta(days=1))]

    assert runs == [(State.RETRYABLE, []), (State.COMPLETED, [])]
