"""What a sleep leaves behind when its attempt has ended: nothing that only the collector of garbage would find."""

from datetime import timedelta

import pytest

from tests.engine import conftest as engine
from tests.engine.garbage import Seen, run_and_look
from timeline import Timeline, after, task
from timeline.lifecycle import State

declared = engine.declared  # Fixtures.

pytestmark = pytest.mark.django_db(transaction=True)  # Async handlers' statements come from another task of the loop.


def sleeping(seen):
    class Job(Timeline):
        entity = "testapp.Order"

        @task(after(days=1), atomic=False)
        def work(self, order):
            seen.see(self, order)
            self.sleep(days=1)

    return Job


def sleeping_async(seen):
    class Job(Timeline):
        entity = "testapp.Order"

        @task(after(days=1), atomic=False)
        async def work(self, order):
            seen.see(self, order)
            await self.sleep(days=1)

    return Job


@pytest.mark.parametrize("make", [sleeping, sleeping_async])
def test_a_context_and_its_task_go_when_the_task_sleeps_and_when_it_has_slept(declared, run_at, later, make):
    seen = Seen()
    row = declared(make(seen))

    runs = [run_and_look(row, at, run_at, seen) for at in (later, later + timedelta(days=2))]

    assert runs == [(State.RETRYABLE, []), (State.COMPLETED, [])]
