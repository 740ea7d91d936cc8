"""Pollers at the same slot, many rounds: one run a slot, whoever was first. Beside a host that holds the lock, none waits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction

from timeline import Timeline, after, hourly, task
from timeline.models import ScheduledTask, TimelineRun
from timeline.models.entities import NO_ENTITY
from timeline.operations.recurring import Ahead, recur
from timeline.store.entity_locks import lock_entities
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

START = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)


class Tidying(Timeline):
    """Comes each hour."""

    starts_on = hourly(zone="UTC", overlap="allow", catch_up="all", within=timedelta(days=3))

    @task(after())
    def tidy(self) -> None: ...


def poll(now: datetime, ahead: Ahead | None = None) -> int:
    return recur(ahead or Ahead(), now=now, using="default")


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
            ahead = Ahead()
            with transaction.atomic():
                lock_entities([NO_ENTITY], using="default")
                [begun] = at_once(lambda: poll(START, ahead))
            assert begun == 0

            assert poll(START, ahead) == 1
