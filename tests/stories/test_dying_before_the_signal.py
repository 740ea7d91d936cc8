"""A save in no transaction: Django commits it, and the process dies before anybody hears of it. The sweep does."""

from __future__ import annotations

import signal
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.processes import DEADLINE, kill, start_process
from tests.testapp.models import Order
from timeline import Timeline, after, at, created, task
from timeline.features.sweep.verbs import begin_round, sweep
from timeline.models import ScheduledTask, TimelineRun
from timeline.testing import only_timelines
from timeline.worker.loop import Sweeper

pytestmark = pytest.mark.django_db(transaction=True)


class Journey(Timeline):
    entity = "testapp.Order"
    starts_on = created()

    @task(at("ships_at"))
    def ship(self, order): ...

    @task(after(days=30))
    def ask(self, order): ...


@pytest.fixture(autouse=True)
def _only_these():
    with only_timelines(Journey):
        yield


@pytest.fixture
def dying(workers, tmp_path):
    """Let a process save an order and die: ``dying("create")``, ``dying("move", str(order.pk))``."""

    def save(*what):
        process = start_process(tmp_path, "dying", "tests.dying", *what)
        try:
            process.wait(DEADLINE)
        finally:
            kill(process)
        assert process.returncode == -signal.SIGKILL, (tmp_path / "dying.log").read_text()

    return save


def sweep_all():
    begin_round(using="default")
    while sweep(now=timezone.now(), using="default").left:
        pass


class TestDyingBeforeTheSignal:
    def test_costs_a_new_entity_no_run_for_good(self, dying):
        sweep_all()
        dying("create")
        assert (Order.objects.count(), TimelineRun.objects.count()) == (1, 0)

        sweep_all()

        assert TimelineRun.objects.open().get().entity_id == str(Order.objects.get().pk)

    def test_soon_after_a_deploy_costs_no_run_either(self, dying):
        """Rounds begin where the process that polls began, not where its first round does."""
        Sweeper("default").turn(timezone.now)
        dying("create")

        sweep_all()

        assert TimelineRun.objects.open().get().entity_id == str(Order.objects.get().pk)

    def test_leaves_no_row_at_the_old_date_for_good(self, dying):
        """Moved to an earlier day: the last look alone would have found it at the later one."""
        order = Order.objects.create(ships_at=timezone.now() + timedelta(days=3))
        dying("move", str(order.pk))
        earlier = Order.objects.get().ships_at
        assert earlier == order.ships_at - timedelta(days=1)
        assert ScheduledTask.objects.get(task_key="journey.ship").scheduled_at == order.ships_at

        sweep_all()

        assert ScheduledTask.objects.get(task_key="journey.ship").scheduled_at == earlier
