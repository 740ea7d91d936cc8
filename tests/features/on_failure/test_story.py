"""Workers are killed while tasks fail for good: for each, the handler of the failure has its effect once."""

from __future__ import annotations

import time
from datetime import timedelta
from random import Random

import pytest
from django.utils import timezone

from tests.features.on_failure.failing.timelines import FailingCase
from tests.processes import kill, let_be_dead, wait_for
from tests.testapp.models import Effect, Order
from timeline.models import ScheduledTask
from timeline.shortcuts import schedule
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

TASKS = 40
KILLS = 5


@pytest.fixture(autouse=True)
def _known():
    with only_timelines(FailingCase):
        yield


def all_ended():
    return not ScheduledTask.objects.open().exists()


class TestWorkersThatAreKilled:
    def test_tell_of_each_failure_once(self, tmp_path, workers):
        at, random = timezone.now() - timedelta(minutes=1), Random(7)  # noqa: S311 (the same each time)
        failing = [
            schedule("failing_case.work", Order.objects.create(), at=at + timedelta(milliseconds=number)).task
            for number in range(TASKS)
        ]
        alive = {name: workers(name) for name in ("w0", "w1")}
        for number in range(KILLS):
            wait_for(lambda least=6 * number: Effect.objects.count() > least or all_ended(), "some work")
            time.sleep(random.uniform(0, 0.1))
            name = random.choice(sorted(alive))
            kill(alive.pop(name))
            let_be_dead(worker__startswith=f"{name}:")
            alive[f"w{number + 2}"] = workers(f"w{number + 2}")

        wait_for(all_ended, "the end of all")
        tasks = ScheduledTask.objects
        ids = sorted(str(task.pk) for task in failing)
        assert set(tasks.filter(task_key="failing_case.work").values_list("state", flat=True)) == {"discarded"}
        told = tasks.filter(task_key="failing_case.tell")
        assert sorted(told.values_list("occurrence", flat=True)) == ids
        assert set(told.values_list("state", flat=True)) == {"completed"}
        assert sorted(Effect.objects.values_list("name", flat=True)) == ids
