"""Answers: how long each is kept."""

from __future__ import annotations

from datetime import timedelta

import pytest

from timeline.clocks import MachineTime
from timeline.models import Answer
from timeline.models.upkeep import KEPT

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)


class TestNoLongerKept:
    def test_is_what_was_answered_longer_ago_by_the_databases_clock(self, clock, now):
        """Story time may stand anywhere."""
        clock.set(now + timedelta(days=900))
        for key, ago in (("gone", KEPT + MINUTE), ("kept", KEPT - MINUTE), ("new", timedelta(0))):
            Answer.objects.create(key=key, fingerprint="f", status=200, headers={}, body="", made_at=MachineTime(-ago))

        assert [answer.key for answer in Answer.objects.no_longer_kept()] == ["gone"]
