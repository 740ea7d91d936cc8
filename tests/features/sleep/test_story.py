"""Workers are killed while tasks fall asleep, sleep and wake: each goes on behind its sleep, once, and none too early."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from random import Random

import pytest
from django.utils import timezone

from tests.features.sleep.naps.timelines import NAP, NapCase
from tests.processes import kill_in_turn
from tests.testapp.models import Effect, Order
from timeline.models import ScheduledTask, StepRecord
from timeline.shortcuts import schedule
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

TASKS = 40
KILLS = 5


@pytest.fixture(autouse=True)
def _known():
    with only_timelines(NapCase):
        yield


class TestWorkersThatAreKilled:
    def test_lose_no_sleeper_and_wake_none_twice_or_early(self, tmp_path, workers):
        at, random = timezone.now() - timedelta(minutes=1), Random(7)  # noqa: S311 (the same each time)
        for number in range(TASKS):
            schedule("nap_case.work", Order.objects.create(), at=at + timedelta(milliseconds=number))
        kill_in_turn(workers, kills=KILLS, each=12, random=random)

        assert set(ScheduledTask.objects.values_list("state", flat=True)) == {"completed"}
        assert set(Counter(Effect.objects.values_list("name", flat=True)).values()) == {1}
        assert Effect.objects.count() == 2 * TASKS
        slept = StepRecord.objects.filter(name="(sleep) 1")
        assert slept.count() == TASKS
        assert all(record.seconds >= NAP.total_seconds() for record in slept)
        rested = ScheduledTask.objects.filter(log__reason_code="waiting").distinct().count()
        assert rested >= TASKS - KILLS  # Who was killed as it fell asleep did not get to rest.
