"""Redrive a group of dead letters."""

from __future__ import annotations

from datetime import timedelta

import pytest

from timeline.exceptions import InvalidInput
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.operations import redrive as operations_redrive
from timeline.shortcuts import dead_letters, redrive, redrive_group

ONE, OTHER = "1" * 16, "2" * 16


@pytest.fixture
def dead(make_task, order):
    def make(count, fingerprint=ONE):
        rows = [make_task(state=State.DISCARDED) for _ in range(count)]
        ScheduledTask.objects.update(fingerprint=fingerprint)
        return rows

    return make


class TestRedriveGroup:
    def test_redrives_all_in_batches(self, dead, monkeypatch):
        monkeypatch.setattr(operations_redrive, "BATCH", 2)
        rows = dead(5)

        done = redrive_group(ONE, reason="mended", actor="ada")

        again = ScheduledTask.objects.filter(previous__in=rows)
        assert (done.redriven, done.left) == (5, {})
        assert set(again.values_list("state", "reason", "actor")) == {(State.AVAILABLE, "mended", "ada")}
        assert again.count() == 5
        assert dead_letters() == []
        assert redrive_group(ONE, reason="mended").redriven == 0

    def test_leaves_other_groups(self, dead):
        dead(1)

        assert redrive_group(OTHER, reason="mended").redriven == 0

    def test_leaves_what_cannot_be_redriven_and_takes_the_rest(self, dead):
        rows = dead(3)
        [later] = redrive(rows[1], reason="by hand")
        ScheduledTask.objects.filter(pk=later.pk).update(previous=None)  # As one that somebody schedules anew.

        done = redrive_group(ONE, reason="mended")

        assert done.redriven == 2
        assert list(done.left) == [rows[1].pk]

    def test_spreads_them_and_never_before_now(self, dead, clock):
        dead(40)

        redrive_group(ONE, reason="mended", spread=timedelta(hours=1))

        due = sorted(ScheduledTask.objects.filter(revision=2).values_list("scheduled_at", flat=True))
        assert clock.now <= due[0] < due[-1] < clock.now + timedelta(hours=1)
        assert len(set(due)) > 30

    @pytest.mark.parametrize("spread", [timedelta(0), timedelta(seconds=-1), timedelta(days=31), 60, "1h"])
    def test_refuses_a_spread_that_is_none(self, dead, spread):
        dead(1)

        with pytest.raises(InvalidInput, match="spread"):
            redrive_group(ONE, reason="mended", spread=spread)

        assert ScheduledTask.objects.count() == 1

    @pytest.mark.parametrize("group", [5, "\x00", "\ud800", "x" * 1000], ids=lambda group: ascii(group)[:10])
    def test_refuses_what_no_group_is_called(self, db, group):
        with pytest.raises(InvalidInput, match=r"^group: "):
            redrive_group(group, reason="mended")

    def test_refuses_a_group_without_name(self, db):
        with pytest.raises(InvalidInput, match="group"):
            redrive_group("", reason="mended")
