"""Polls go on with bulk actions."""

from __future__ import annotations

from datetime import timedelta

from project.accounts.models import User
from tests.dispatch import test_dispatching as dispatching
from tests.features.bulk_actions.bulk import bulk_action
from timeline.dispatch.poll import dispatch
from timeline.features.bulk_actions import poll as bulk_actions_poll
from timeline.features.bulk_actions.poll import begin_bulk
from timeline.models import ScheduledTask

_only_these = dispatching._only_these  # Fixtures.
due = dispatching.due
post = dispatching.post


class TestActingInBulk:
    def test_goes_on_while_nothing_else_is_left_to_send(self, post, due, now, monkeypatch):
        """A turn ends after a batch here; the poll has time for all of them, and sends what they made due."""
        monkeypatch.setattr(bulk_actions_poll, "A_TURN", 0)
        monkeypatch.setattr(bulk_actions_poll, "BATCH", 1)
        boss = User.objects.create(
            email="a@example.com", signed_up_at=now, trial_ends_at=now, is_staff=True, is_superuser=True
        )
        tasks = [due(scheduled_at=now + timedelta(hours=1)) for _ in range(3)]
        asked = bulk_action("run_now", asker=boss.pk, created_at=now, filters={"task": "job.one"})
        bulk = begin_bulk(asked, ScheduledTask.objects.all(), using="default")

        dispatch(sender=post, now=now, using="default")

        bulk.refresh_from_db()
        assert (bulk.state, bulk.done) == ("done", 3)
        assert set(post.task_ids) == {task.pk for task in tasks}
