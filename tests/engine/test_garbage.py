"""What a run leaves behind: nothing that only the collector of garbage would find, which would take a tenth of the time."""

from datetime import timedelta
from weakref import ref

import pytest

from tests.engine.garbage import Seen, run_and_look, without_collector
from timeline import RetryAfter
from timeline.lifecycle import State
from timeline.models import ScheduledTask

pytestmark = pytest.mark.django_db(transaction=True)  # Async handlers' statements come from another task of the loop.


@pytest.mark.parametrize("kind", [True, False, "shared", "async", "bulk"])
def test_a_context_and_its_task_go_when_the_handler_has_ended(crowd, run_all, kind):
    seen = []

    def handler(job, order):
        seen.extend([ref(job), ref(job.task)])

    async def coroutine(job, order):
        handler(job, order)

    def bulk(job, orders):
        seen.extend([ref(job), *(ref(one.task) for one in job.tasks.values())])

    options = {"async": {"atomic": False}, "bulk": {"bulk": 10}}.get(kind, {"atomic": kind})
    rows = crowd(3, {"async": coroutine, "bulk": bulk}.get(kind, handler), **options)

    with without_collector():
        run_all(rows)
        there = [one() for one in seen]

    assert {row.state for row in ScheduledTask.objects.filter(pk__in=[row.pk for row in rows])} == {"completed"}
    assert seen
    assert there == [None] * len(seen)


def test_a_context_and_its_task_go_when_it_was_tried_before(work, run_at, later):
    seen = Seen()

    def handler(job, order):
        if job.task.attempt == 1:
            raise RetryAfter(timedelta(minutes=5))
        seen.see(job, order)

    row = work(handler)
    run_at(row, later)

    assert run_and_look(row, later + timedelta(hours=1), run_at, seen) == (State.COMPLETED, [])
