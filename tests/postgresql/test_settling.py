"""Two beats and four workers at the same second of a night: one settlement."""

from __future__ import annotations

from project.billing.timelines import Settlement
from tests.billing import at_night, settle, transactions
from timeline.dispatch.poll import stage
from timeline.features.recurring.verbs import NextBeginnings, recur
from timeline.models import ScheduledTask, TimelineRun


class TestTwoBeats:
    known = [Settlement]

    def test_and_two_workers_settle_once(self, billing, outside, at_once):
        transactions(300, billing.now)
        night = at_night(billing)
        at_once(*[lambda: recur(NextBeginnings(), now=billing.now, using="default")] * 4)
        recur(NextBeginnings(), now=billing.now, using="default")
        stage(now=night, using="default")
        task = ScheduledTask.objects.get(task_key="settlement.settle")

        at_once(*[lambda: settle(lambda: night)] * 4)

        assert TimelineRun.objects.count() == 1
        assert (outside.books.done["settle"], outside.books.told()["paid_twice"]) == (3, 0)
        assert ScheduledTask.objects.get(pk=task.pk).state == "completed"
