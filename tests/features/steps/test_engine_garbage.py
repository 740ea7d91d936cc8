"""What steps leave behind when their handler has ended: nothing that only the collector of garbage would find."""

import pytest

from tests.engine import conftest as engine
from tests.engine.garbage import Seen, run_and_look
from tests.testapp.models import Order
from timeline import Timeline, after, step, task
from timeline.lifecycle import State

declared = engine.declared  # Fixtures.

pytestmark = pytest.mark.django_db(transaction=True)  # Async handlers' statements come from another task of the loop.


def taking(take, seen):
    class Job(Timeline):
        entity = "testapp.Order"

        @task(after(days=1), atomic=False)
        def work(self, order):
            seen.see(self, order)
            take(self)

        @step
        def number(self):
            return 1

        @step(atomic=False)
        def upload(self):
            return "there"

        @step(atomic=False, once=True)
        def send(self):
            return None

        @step
        def count(self, orders):
            return {"orders": len(orders)}

    return Job


def taking_async(take, seen):
    class Job(Timeline):
        entity = "testapp.Order"

        @task(after(days=1), atomic=False)
        async def work(self, order):
            seen.see(self, order)
            await take(self)

        @step(atomic=False)
        async def upload(self):
            return "there"

    return Job


SEVERAL = {
    "none": (taking, lambda job: None),
    "atomic": (taking, lambda job: job.number()),
    "plain": (taking, lambda job: job.upload()),
    "once": (taking, lambda job: job.send()),
    "loop": (taking, lambda job: job.each(job.count, Order.objects.all())),
    "progress": (taking, lambda job: job.progress(1, 2)),
    "async": (taking_async, lambda job: job.upload()),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_a_context_and_its_task_go_with_their_steps(declared, run_at, later, name):
    make, take = SEVERAL[name]
    seen = Seen()
    row = declared(make(take, seen))

    assert run_and_look(row, later, run_at, seen) == (State.COMPLETED, [])
