"""Approve and reject, where what is asked for was renamed meanwhile."""

from datetime import timedelta

import pytest

from timeline import Timeline, approval, task
from timeline.features.waits.approve import decide_approval
from timeline.lifecycle import Reason, State
from timeline.models import ScheduledTask
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db


def refunding(name):
    class Job(Timeline):
        entity = "testapp.Order"

        @task(approval(name, by="testapp.change_order", within=timedelta(days=2)))
        def work(self, order):
            return self.awaited.name if self.awaited else "nobody decided"

    return Job


class TestARenamedApproval:
    def test_makes_rows_due_that_were_made_with_the_old_name(self, order, now, start_at, run_at):
        with only_timelines(refunding("refund")):
            start_at("job", order, now)
            row = ScheduledTask.objects.get()
        with only_timelines(refunding("payback")):
            reason = Reason.operator("", actor="ada")
            decided = decide_approval(task_id=row.pk, approved=True, reason=reason, now=now, using="default")

            assert (decided.state, decided.scheduled_at, decided.reason) == (
                State.AVAILABLE,
                now,
                "payback.approved came",
            )
            assert run_at(row, now).result == "payback.approved"
