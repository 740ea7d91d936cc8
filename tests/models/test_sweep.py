"""How far the parts of the sweep have come: which of them rest."""

from __future__ import annotations

from datetime import timedelta

import pytest

from timeline.clocks import MachineTime
from timeline.models import Sweep

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)


class TestResting:
    @pytest.mark.parametrize(
        ("begun", "is_over", "rests"),
        [(MINUTE / 2, True, True), (MINUTE / 2, False, False), (2 * MINUTE, True, False), (2 * MINUTE, False, False)],
    )
    def test_is_what_is_over_until_an_interval_after_its_begin(self, begun, is_over, rests):
        ended_at = MachineTime() if is_over else None
        Sweep.objects.create(timeline="trial", begun_at=MachineTime(-begun), ended_at=ended_at)

        assert Sweep.objects.resting(MINUTE).exists() is rests
