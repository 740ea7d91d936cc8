"""Pollers at the same slot, many rounds: one run a slot, whoever was first. Beside a host that holds the lock, none waits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from django.db import transaction

from tests.postgresql import conftest as postgresql
from timeline import Timeline, after, daily, hourly, task
from timeline.engine.groups import run
from timeline.features.recurring.verbs import NextBeginnings, recur
from timeline.models import ScheduledTask, TimelineRun
from timeline.models.entities import NO_ENTITY
from timeline.store.locks import lock_entities
from timeline.testing import only_timelines

at_once = postgresql.at_once  # Fixtures.

pytestmark = pytest.mark.django_db(transaction=True)

START = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)


class Tidying(Timeline):
    """Comes each hour."""

    starts_on = hourly(zone="UTC", overlap="allow", catch_up="all", within=timedelta(days=3))

    @task(after())
    def tidy(self) -> None: ...


class Settling(Timeline):
    """A later run waits for an earlier one."""

    starts_on = daily("02:00", zone="UTC", overlap="queue")

    @task(after(), atomic=False)
    def settle(self) -> None: ...

    @task(after(settle))
    def end(self) -> None: ...


def run_at(now: datetime, day: datetime, name: str) -> list[ScheduledTask]:
    asked = ScheduledTask.objects.filter(run__key__startswith=f"{day:%Y-%m-%d}", task_key=f"settling.{name}")
    return run(task_ids=[row.pk for row in asked], clock=lambda: now, using="default")


def poll(now: datetime, ahead: NextBeginnings | None = None) -> int:
    return recur(ahead or NextBeginnings(), now=now, using="default")


class TestPollers:
    def test_begin_one_run_a_slot(self, at_once):
        """Those that are too late by a lock try again at their next poll; nothing is lost by that."""
        with only_timelines(Tidying):
            for round_ in range(60):
                now = START + round_ * 2 * HOUR
                at_once(*[lambda now=now: poll(now)] * 4)
                poll(now)

        keys = list(TimelineRun.objects.values_list("key", flat=True))
        assert len(keys) == len(set(keys)) == 60 * 2 - 1
        assert ScheduledTask.objects.count() == len(keys)

    def test_wait_for_no_host(self, at_once):
        with only_timelines(Tidying):
            ahead = NextBeginnings()
            with transaction.atomic():
                lock_entities([NO_ENTITY], using="default")
                [begun] = at_once(lambda: poll(START, ahead))
            assert begun == 0

            assert poll(START, ahead) == 1


class TestARunInLine:
    def test_rests_behind_none_that_has_ended(self, at_once):
        """It goes to rest while the earlier one ends: whichever is first, it is due then, and waits for no hour to pass."""
        days = [START + timedelta(days=number) for number in range(1, 31)]
        with only_timelines(Settling):
            ahead = NextBeginnings()
            poll(START, ahead)
            run_at(days[0], days[0], "settle")
            for earlier, later in pairwise(days):
                poll(earlier, ahead)
                now = earlier + 17 * HOUR
                at_once(lambda: run_at(now, earlier, "end"), lambda: run_at(now, later, "settle"))  # noqa: B023 (called at once)

                [row] = ScheduledTask.objects.filter(
                    task_key="settling.settle", run__key__startswith=f"{later:%Y-%m-%d}"
                )
                assert row.scheduled_at <= now
                run_at(now, later, "settle")
