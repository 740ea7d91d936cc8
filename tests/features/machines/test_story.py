"""Workers are killed while runs move by conditions, and many say the same at once: each way is taken once, with its effect."""

from __future__ import annotations

import threading
from random import Random

import pytest
from django.db import connection

from tests.features.machines.moving.timelines import MovingCase, PayCase
from tests.processes import kill_in_turn
from tests.testapp.models import Effect, Order
from timeline.exceptions import MoveNotAllowed
from timeline.models import ScheduledTask, TimelineRun
from timeline.shortcuts import emit, start, start_many
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

RUNS = 40
KILLS = 5
AT_ONCE = 6


@pytest.fixture(autouse=True)
def _known():
    with only_timelines(MovingCase, PayCase):
        yield


class TestWorkersThatAreKilled:
    def test_move_each_run_once_with_its_effect(self, tmp_path, workers):
        random = Random(7)  # noqa: S311 (the same each time)
        orders = [Order.objects.create(paid=number % 2 == 0) for number in range(RUNS)]
        start_many("moving_case", orders)
        kill_in_turn(workers, kills=KILLS, each=6, random=random)

        assert set(ScheduledTask.objects.values_list("state", flat=True)) == {"completed"}
        came_to = {f"{order.pk} {'paid' if order.paid else 'unpaid'}" for order in orders}
        assert sorted(Effect.objects.values_list("name", flat=True)) == sorted(came_to)
        assert {f"{run.entity_id} {run.state}" for run in TimelineRun.objects.all()} == came_to


class TestManyAtOnce:
    def test_see_what_the_one_before_has_done(self):
        """Conditions are asked under the lock: one pays, the next ends it, and the others come too late."""
        order = Order.objects.create()
        start("pay_case", order)
        refused, barrier = [], threading.Barrier(AT_ONCE)

        def say():
            barrier.wait()
            try:
                emit("case.pay", order)
            except MoveNotAllowed as error:
                refused.append(error)
            finally:
                connection.close()

        threads = [threading.Thread(target=say) for _ in range(AT_ONCE)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert list(Effect.objects.values_list("name", flat=True)) == [f"{order.pk} paid"]
        assert TimelineRun.objects.get().state == "over"
        assert len(refused) == AT_ONCE - 2
        assert all(error.ended for error in refused)
