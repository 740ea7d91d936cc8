"""A handler that ends the process of its worker: the worker ends as it says, and the attempt has failed."""

import pytest

from tests.processes import DEADLINE, kill, start_worker
from tests.testapp.models import Effect, Order
from timeline.models import ScheduledTask
from timeline.shortcuts import schedule

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]


@pytest.mark.parametrize("kind", ["plain", "coroutine"])
@pytest.mark.parametrize("threads", ["1", "2"])
def test_ends_a_worker(kind, threads, now, tmp_path):
    left, *others = [
        schedule(f"pool_case.{kind}", Order.objects.create(note=note), at=now) for note in ("leave", "", "")
    ]

    worker = start_worker(tmp_path, "worker", "--threads", threads)
    try:
        status = worker.wait(DEADLINE)
    finally:
        kill(worker)

    rows = ScheduledTask.objects.in_bulk()
    failed = rows[left.task.pk]
    assert status == 3
    assert (failed.state, failed.reason_code, failed.failures) == ("retryable", "error", 1)
    assert {rows[other.task.pk].state for other in others} <= {"completed", "retryable", "available", "scheduled"}
    assert Effect.objects.count() == sum(row.state == "completed" for row in rows.values()) + 1
    assert f"SystemExit: 3 (task {failed.pk})" in (tmp_path / "worker.log").read_text()
