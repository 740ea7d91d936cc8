"""What the doctor says of limits."""

from __future__ import annotations

from datetime import timedelta

from tests.reading import test_diagnosing as diagnosing
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.reading.diagnosis import diagnose

_polled = diagnosing._polled  # Fixtures.


class TestLimits:
    def test_that_are_closed_are_named_and_no_good_sign(self, make_task, now):
        row = make_task(state=State.DISCARDED, attempt=1, scheduled_at=now - timedelta(days=9))
        ScheduledTask.objects.filter(pk=row.pk).update(limit_key="payout", slot=1, held_until="opened")

        found = diagnose(now=now, using="default")

        assert (found.closed_limits, found.working, found.well) == (["payout"], True, False)

    def test_make_nobody_late_who_waits_for_a_place(self, make_task, now):
        waits = make_task(state=State.AVAILABLE, scheduled_at=now - timedelta(days=3))
        ScheduledTask.objects.filter(pk=waits.pk).update(limit_key="payout", held_until="attempt")

        assert diagnose(now=now, using="default").well
