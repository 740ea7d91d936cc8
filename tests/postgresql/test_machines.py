"""Two who move the same machine at once: as if one came after the other, and what expects a state is told."""

from __future__ import annotations

import os
import time
from collections import Counter
from functools import partial

import pytest
from django.db import IntegrityError

from tests.machines import Booking, S, is_whole, placed
from tests.postgresql.races import rounds
from tests.testapp.models import Order
from timeline import Machine
from timeline.exceptions import MoveNotAllowed
from timeline.features.machines.edges import forget_edges, see_edges
from timeline.models import Edge, Event, RunEntry, TimelineRun
from timeline.operations.leave import leave
from timeline.shortcuts import emit, emit_many
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = int(os.environ.get("RACE_ROUNDS", "60"))


@pytest.fixture(autouse=True)
def _booking():
    with only_timelines(Booking):
        yield


class TestTwoEvents:
    def test_that_expect_the_same_state_move_it_once(self, at_once):
        for _ in range(ROUNDS):
            run = placed(Order.objects.create(), S.QUEUED)
            order = Order.objects.get(pk=run.entity_id)

            done = at_once(*[partial(emit, "portal.open", order, expect=S.QUEUED)] * 2)

            assert Counter(type(one).__name__ for one in done) == {"Emission": 1, "MoveNotAllowed": 1}
            [refused] = [one for one in done if isinstance(one, MoveNotAllowed)]
            assert (refused.state, refused.expected) == ("AUTHENTICATING", "QUEUED")
            run.refresh_from_db()
            assert (run.state, run.moves) == ("AUTHENTICATING", 1)
            assert is_whole(run)

    def test_that_lead_elsewhere_come_one_after_the_other(self, at_once):
        """A slot is found, and the applicant cancels: either the one is refused, or the other cancels what is found."""
        ways: Counter[tuple[str, ...]] = Counter()
        for number in rounds(ROUNDS, lambda: len(ways) == 2):
            order = Order.objects.create()
            run = placed(order, S.SEARCHING)
            events = ["slot.found", "booking.cancelled"][:: 1 if number % 2 else -1]

            def emitted(event, lag, order=order):
                time.sleep(lag)
                return emit(event, order)

            lag = 0.0 if number < ROUNDS else 0.02
            done = at_once(partial(emitted, events[0], 0.0), partial(emitted, events[1], lag))

            run.refresh_from_db()
            assert run.state == "CANCELLED"
            assert run.ended_at is not None
            assert is_whole(run)
            entries = tuple(RunEntry.objects.filter(run=run, seq__gt=0).order_by("seq").values_list("event", flat=True))
            assert entries in [("booking.cancelled",), ("slot.found", "booking.cancelled")]
            refused = [one for one in done if isinstance(one, Exception)]
            assert [type(one) for one in refused] == [MoveNotAllowed] * (2 - len(entries))
            ways[entries] += 1
        assert len(ways) == 2, ways

    def test_with_the_same_key_move_it_once_and_neither_is_an_error(self, at_once):
        for _ in range(ROUNDS):
            order = Order.objects.create()
            run = placed(order, S.OPERATOR_ESCALATED, back=S.SEARCHING)

            done = at_once(*[partial(emit, "sla.operator", order, key="hook")] * 3)

            assert sorted(one.recorded for one in done) == [False, False, True]
            run.refresh_from_db()
            assert run.moves == 1
            assert Event.objects.filter(entity_id=str(order.pk)).count() == 1


class TestOthersBeside:
    def test_a_leave_comes_before_or_after_a_move(self, at_once, now):
        for _ in range(ROUNDS):
            order = Order.objects.create()
            run = placed(order, S.QUEUED)
            left = partial(
                leave, timeline="booking", entity=order, key="", reason="x", actor="", now=now, using="default"
            )

            moved, _run = at_once(partial(emit, "portal.open", order), left)

            run.refresh_from_db()
            assert run.ended_at is not None
            assert run.state == ("QUEUED" if isinstance(moved, MoveNotAllowed) else "AUTHENTICATING")
            assert is_whole(run)

    def test_many_at_once_in_any_order_wait_for_each_other_in_no_circle(self, at_once):
        orders = [Order.objects.create() for _ in range(30)]
        for order in orders:
            placed(order, S.OPERATOR_ESCALATED, back=S.SEARCHING)

        done = at_once(partial(emit_many, "sla.operator", orders), partial(emit_many, "sla.operator", orders[::-1]))

        assert [tally.moved for tally in done] == [30, 30]
        assert set(TimelineRun.objects.values_list("moves", flat=True)) == {2}

    def test_a_stale_save_beside_a_move_is_refused(self, at_once):
        for _ in range(ROUNDS // 4):
            order = Order.objects.create()
            run = placed(order, S.SEARCHING)
            stale = TimelineRun.objects.get(pk=run.pk)
            emit("slot.none", order)

            moved, saved = at_once(partial(emit, "look.again", order), stale.save)

            assert not isinstance(moved, Exception)
            assert isinstance(saved, IntegrityError)
            assert is_whole(run)


class TestEdges:
    def test_are_written_once_by_many_who_start_at_once(self, at_once):
        class Door(Machine):
            entity = "testapp.Order"
            initial = "shut"
            table = {
                "shut": {"door.opened": "open"},
                "open": {"door.shut": "shut", "door.broken": "broken"},
                "broken": {},
            }

        with only_timelines(Door):
            for _ in range(10):
                Edge.objects.all().delete()
                forget_edges("default")

                done = at_once(*[partial(see_edges, using="default")] * 4)

                assert done == [None] * 4
                assert Edge.objects.count() == 3
