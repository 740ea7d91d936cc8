"""Acting in bulk beside others: several polls at once do nothing twice, and what somebody has locked is waited for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from project.accounts.models import User
from tests.features.bulk_actions.bulk import bulk_action
from timeline.features.bulk_actions import poll as bulk_actions_poll
from timeline.features.bulk_actions.poll import act_in_bulk, begin_bulk
from timeline.lifecycle import State
from timeline.models import ScheduledTask

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def begun(make_task, now):
    """Ask for a redrive of so many dead letters; gives the bulk action and the tasks."""

    def begin(count):
        boss = User.objects.create(
            email="a@example.com", signed_up_at=now, trial_ends_at=now, is_staff=True, is_superuser=True
        )
        tasks = [make_task(state=State.DISCARDED) for _ in range(count)]
        asked = bulk_action("redrive", asker=boss.pk, created_at=now, filters={"state": ["discarded"]})
        return begin_bulk(asked, ScheduledTask.objects.all(), using="default"), tasks

    return begin


def polls(now):
    """Poll until there is nothing to do, on a connection of this thread's."""
    try:
        return sum(iter(lambda: act_in_bulk(now=now, using="default"), 0))
    finally:
        connection.close()


class TestSeveralPolls:
    def test_do_nothing_twice(self, begun, now, monkeypatch):
        monkeypatch.setattr(bulk_actions_poll, "BATCH", 3)
        bulk, tasks = begun(40)

        with ThreadPoolExecutor(3) as pool:
            for poll in [pool.submit(polls, now) for _ in range(3)]:
                poll.result(30)
        while act_in_bulk(now=now, using="default"):
            pass

        bulk.refresh_from_db()
        assert (bulk.state, bulk.done, bulk.skipped) == ("done", 40, {})
        assert ScheduledTask.objects.filter(previous__in=tasks).count() == 40


class TestALockedTask:
    def test_is_waited_for_by_later_polls(self, begun, now):
        bulk, tasks = begun(8)

        def lock_and_poll():
            with transaction.atomic():
                ScheduledTask.objects.select_for_update().get(pk=tasks[5].pk)
                with ThreadPoolExecutor(1) as pool:
                    return pool.submit(polls, now).result(30)

        before = lock_and_poll()
        after = act_in_bulk(now=now, using="default")

        bulk.refresh_from_db()
        assert before <= 5  # Those in front of it, as far as the turn of a poll goes.
        assert before + after == 8
        assert (bulk.state, bulk.done, bulk.skipped) == ("done", 8, {})
