"""Tasks that kill their worker each time: their neighbours in the group are run again, and none of them pays for it."""

from __future__ import annotations

import signal
from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.processes import DEADLINE, kill, start_process, wait_for
from tests.testapp.models import Effect, Order
from timeline.models import ScheduledTask
from timeline.shortcuts import schedule

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only_postgresql, pytest.mark.processes]

TASKS, POISONED = 1000, 10


@pytest.fixture
def kept(tmp_path):
    """Workers that are restarted as they die; their leases are short."""
    process = start_process(tmp_path, "restarting", "tests.faults.restarting", "2", TEST_LEASE="3")
    yield process
    kill(process)


class TestTenThatKillTheirWorker:
    @pytest.mark.parametrize("kind", ["fast_plain", "fast_shared"])
    def test_cost_no_neighbour_its_budget(self, kind, tmp_path, request):
        at = timezone.now() - timedelta(minutes=1)
        every = TASKS // POISONED
        orders = Order.objects.bulk_create(
            Order(note="poison" if number % every == every // 2 else "") for number in range(TASKS)
        )
        for number, order in enumerate(orders):
            schedule(f"crash_case.{kind}", order, at=at + timedelta(milliseconds=number))
        poisoned = {str(order.pk) for order in orders if order.note}
        neighbours = ScheduledTask.objects.exclude(entity_id__in=poisoned)

        kept = request.getfixturevalue("kept")
        wait_for(lambda: not neighbours.open().exists(), "the end of the neighbours", within=5 * DEADLINE)

        assert Counter(neighbours.values_list("state", "failures", "lost")) == {("completed", 0, 0): TASKS - POISONED}
        if kind != "fast_plain":
            effects = Counter(Effect.objects.values_list("name", flat=True))
            assert effects == {str(pk): 1 for pk in neighbours.values_list("pk", flat=True)}
        assert not ScheduledTask.objects.filter(entity_id__in=poisoned, state="completed").exists()
        kept.send_signal(signal.SIGTERM)
