"""Extend: say that a worker is still at it."""

from datetime import UTC, datetime, timedelta

import pytest

from timeline.dispatch.worker_signs import extend_leases
from timeline.lifecycle import State
from timeline.timing import EARLIEST


class TestExtendLeases:
    def test_gives_a_lease_from_now_by_the_real_clock(self, make_task, settings, clock):
        settings.TIMELINE = {"LEASE": timedelta(seconds=90)}
        clock.set(datetime(2999, 1, 1, tzinfo=UTC))
        row = make_task(state=State.ACTIVE, attempt=2, lease_expires_at=EARLIEST)

        extended = extend_leases({row.pk: 2}, using="default")

        row.refresh_from_db()
        assert extended == 1
        assert timedelta(seconds=80) < row.lease_expires_at - datetime.now(UTC) < timedelta(seconds=91)
        assert row.log.count() == 0

    @pytest.mark.parametrize("attempt", [1, 3])
    def test_leaves_another_attempt(self, make_task, attempt):
        row = make_task(state=State.ACTIVE, attempt=2, lease_expires_at=EARLIEST)

        assert extend_leases({row.pk: attempt}, using="default") == 0
        row.refresh_from_db()
        assert row.lease_expires_at == EARLIEST

    @pytest.mark.parametrize("state", sorted(set(State) - {State.ACTIVE}))
    def test_leaves_what_is_not_active(self, make_task, state):
        row = make_task(state=state)
        before = row.lease_expires_at

        assert extend_leases({row.pk: 0}, using="default") == 0
        row.refresh_from_db()
        assert row.lease_expires_at == before

    @pytest.mark.only_postgresql
    def test_does_not_wait_for_the_disk(self, transactional_db, make_task, settings_of_writes):
        row = make_task(state=State.ACTIVE, attempt=2, lease_expires_at=EARLIEST)

        made = settings_of_writes("synchronous_commit", lambda: extend_leases({row.pk: 2}, using="default"))

        assert made == ["off"]

    def test_makes_as_many_statements_for_ten_as_for_a_hundred(self, make_task, statements_of):
        made = []
        for number in (10, 100):
            attempts = {make_task(state=State.ACTIVE, attempt=1).pk: 1 for _ in range(number)}
            made.append(statements_of(lambda held=attempts: extend_leases(held, using="default")))

        assert made[0] == made[1]
