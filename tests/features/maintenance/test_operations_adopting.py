"""Adopt: a database becomes this site's, with what is open in it or without."""

from __future__ import annotations

import pytest

from timeline.features.maintenance import adopt as maintenance_adopt
from timeline.features.maintenance.adopt import adopt, clear, count_open
from timeline.lifecycle import OPEN, Reason, State
from timeline.models import ScheduledTask, TimelineRun
from timeline.store.site import confirm_site

REASON = Reason.operator("the database was taken over", "timeline_adopt")


@pytest.fixture
def left_open(work, start_at, schedule_at, make_task, order, now):
    """What another site left: two runs, an ad hoc task, and rows in each open state."""
    work()
    start_at("job", order, now, key="second")
    schedule_at("job.ad_hoc", order, now, now)
    for state in sorted(OPEN):
        make_task(state=state)


class TestAdopt:
    def test_makes_the_database_ours(self, db, now, settings):
        settings.TIMELINE = {"SITE": "staging"}

        adopt(now=now, using="default")

        confirm_site(using="default")


class TestClear:
    def test_ends_all_that_is_open_with_the_reason(self, left_open, now):
        found = count_open(using="default")

        ended = clear(reason=REASON, now=now, using="default")

        assert ended == found
        assert count_open(using="default") == (0, 0)
        ends = ScheduledTask.objects.values_list("state", "reason_code", "reason", "actor").distinct()
        assert list(ends) == [("cancelled", "operator", REASON.text, REASON.actor)]
        assert set(TimelineRun.objects.values_list("end_reason", flat=True)) == {REASON.text}

    def test_leaves_what_has_ended(self, make_task, now):
        row = make_task(state=State.COMPLETED)

        assert clear(reason=REASON, now=now, using="default") == (0, 0)
        row.refresh_from_db()
        assert (row.state, row.seq) == ("completed", 0)

    def test_goes_on_batch_after_batch(self, make_task, now, monkeypatch):
        monkeypatch.setattr(maintenance_adopt, "BATCH", 2)
        for _ in range(5):
            make_task()

        assert clear(reason=REASON, now=now, using="default").tasks == 5
