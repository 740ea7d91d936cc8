"""Two emit in bursts, and two work, of whom one is killed again and again: each event is in one run, in its time."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from random import Random

import pytest
from django.db import connection, connections

from tests.features.debounce.bursts.timelines import QUIET, BurstCase
from tests.processes import all_ended, kill_in_turn, wait_for
from tests.testapp.models import Effect, Order
from timeline.models import Event, ScheduledTask
from timeline.shortcuts import emit
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

ORDERS = 8
EVENTS = 100
KILLS = 4


@pytest.fixture(autouse=True)
def _known():
    with only_timelines(BurstCase):
        yield


def _emit(seed: int) -> None:
    random, orders = Random(seed), list(Order.objects.order_by("pk"))  # noqa: S311 (the same each time)
    for _number in range(EVENTS):
        emit("burst.edited", random.choice(orders))
        time.sleep(random.uniform(0, 0.1))
    connections.close_all()


class TestWorkersThatAreKilled:
    def test_run_each_burst_once(self, tmp_path, workers):
        Order.objects.bulk_create(Order() for _number in range(ORDERS))
        emitters = 2 if connection.vendor == "postgresql" else 1
        with ThreadPoolExecutor(emitters) as pool:
            emitting = [pool.submit(_emit, seed) for seed in range(emitters)]
            wait_for(ScheduledTask.objects.exists, "the first burst")
            kill_in_turn(workers, kills=KILLS, each=2, random=Random(7))  # noqa: S311 (the same each time)
            for done in emitting:
                done.result()
        wait_for(all_ended, "the end of the last bursts")

        rows = list(ScheduledTask.objects.all())
        assert {row.state for row in rows} == {"completed"}
        assert ORDERS <= len(rows) < emitters * EVENTS
        assert sorted(Effect.objects.values_list("name", flat=True)) == sorted(str(row.pk) for row in rows)
        assert sum(row.payload["burst"]["events"] for row in rows) == Event.objects.count() == emitters * EVENTS
        for row in rows:
            last, latest = (datetime.fromisoformat(row.payload["burst"][name]) for name in ("last_at", "latest_at"))
            assert row.started_at >= row.scheduled_at
            # One that came when the row was due joins it; and an attempt that was lost is tried again later.
            if last < row.scheduled_at and row.attempt == 1:
                assert row.scheduled_at == min(last + QUIET, latest)
