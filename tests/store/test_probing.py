"""Probes: what a poll asks every second, in one statement each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.databases import VENDOR
from timeline.clocks import MachineTime
from timeline.lifecycle import State
from timeline.models import Identity, ScheduledTask, Sign, Wake
from timeline.store.floors import IndexPlace
from timeline.store.poll_queries import Waiting, probe_lost, probe_waiting, sign

pytestmark = pytest.mark.django_db

SECOND = timedelta(seconds=1)
postgresql_only = pytest.mark.only_postgresql  # SQLite reads the rows instead.


@postgresql_only
class TestProbeWaiting:
    @pytest.mark.parametrize("state", [State.SCHEDULED, State.RETRYABLE])
    def test_tells_the_time_of_the_longest_due(self, make_task, now, state):
        rows = {seconds: make_task(state=state, scheduled_at=now - seconds * SECOND) for seconds in (1, 3, 2, -1)}

        assert probe_waiting(now=now, using="default") == Waiting(IndexPlace(now - 3 * SECOND, rows[3].pk))

    def test_tells_none_of_what_is_ahead_or_does_not_wait(self, make_task, now):
        make_task(scheduled_at=now + SECOND)
        make_task(state=State.COMPLETED, scheduled_at=now - SECOND)

        assert probe_waiting(now=now, using="default") == Waiting()

    def test_tells_whether_any_is_available(self, make_task, now):
        make_task(state=State.AVAILABLE, scheduled_at=now + SECOND)

        assert probe_waiting(now=now, using="default") == Waiting(None, some_available=True)

    def test_tells_whether_there_are_notes(self, now):
        Wake.objects.create(name="order.paid", entity_label="testapp.order", entity_id="1")

        assert probe_waiting(now=now, using="default") == Waiting(None, some_noted=True)


class TestProbeLost:
    @pytest.mark.parametrize("state", [State.PENDING, State.ACTIVE])
    def test_finds_a_lease_that_has_run_out(self, make_task, state):
        """While none has, it says until when they lasted, on PostgreSQL."""
        task = make_task(state=state)
        before = probe_lost(using="default")

        ScheduledTask.objects.filter(pk=task.pk).update(lease_expires_at=MachineTime(-SECOND))

        assert not before.is_lost
        assert VENDOR == "sqlite" or abs(before.leases_valid_at - datetime.now(UTC)) < 5 * SECOND
        assert probe_lost(using="default") == (None, True)

    @pytest.mark.parametrize(("seconds", "found"), [(1, False), (8, False), (10, True)])
    def test_finds_a_worker_that_is_missed(self, seconds, found):
        """What is known of the leases stays known."""
        Sign.objects.create(worker="host:1:ab12", seen_at=MachineTime(-seconds * SECOND))

        probed = probe_lost(using="default")

        assert probed.is_lost == found
        assert bool(probed.leases_valid_at) == (VENDOR == "postgresql")


class TestSign:
    def test_says_whose_it_is_and_whether_nobody_polled(self):
        Identity.objects.update(site="staging", polled_at=MachineTime(-60 * SECOND))

        assert sign(59 * SECOND, using="default") == ("staging", True, False, False)
        assert sign(70 * SECOND, using="default") == ("staging", False, False, False)

    def test_says_that_nobody_ever_polled(self):
        Identity.objects.update(polled_at=None)

        assert sign(SECOND, using="default") == ("", True, False, False)

    def test_is_of_nobody_where_there_is_no_row(self):
        Identity.objects.all().delete()

        assert sign(SECOND, using="default") == ("", False, False, False)
