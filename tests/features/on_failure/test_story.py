"""Workers are killed while tasks fail for good: for each, the handler of the failure has its effect once."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest
from django.utils import timezone

from tests.features.on_failure.failing.timelines import FailingCase
from tests.processes import kill_in_turn
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


class TestWorkersThatAreKilled:
    def test_tell_of_each_failure_once(self, tmp_path, workers):
        at, random = timezone.now() - timedelta(minutes=1), Random(7)  # noqa: S311 (the same each time)
        failing = [
            schedule("failing_case.work", Order.objects.create(), at=at + timedelta(milliseconds=number)).task
            for number in range(TASKS)
        ]
        kill_in_turn(workers, kills=KILLS, each=6, random=random)

        tasks = ScheduledTask.objects
        ids = sorted(str(task.pk) for task in failing)
        assert set(tasks.filter(task_key="failing_case.work").values_list("state", flat=True)) == {"discarded"}
        told = tasks.filter(task_key="failing_case.tell")
        assert sorted(told.values_list("occurrence", flat=True)) == ids
        assert set(told.values_list("state", flat=True)) == {"completed"}
        assert sorted(Effect.objects.values_list("name", flat=True)) == ids
