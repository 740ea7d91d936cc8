from __future__ import annotations

from datetime import timedelta

import pytest

from tests.testapp.models import Order
from timeline import Limit, Timeline, task
from timeline.features.limits.claims import claim_limited, is_place_free
from timeline.features.limits.places import leave_turn
from timeline.lifecycle import State
from timeline.models import Pace, ScheduledTask
from timeline.shortcuts import schedule
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)


class Narrow(Timeline):
    entity = "testapp.Order"

    @task(limit=Limit(2, by="note"), atomic=False, queue="slow")
    def call(self, order): ...

    @task(limit=3, atomic=False)
    async def side_by_side(self, order): ...


@pytest.fixture(autouse=True)
def known():
    for name in ("call", "side_by_side"):
        leave_turn(f"narrow.{name}", "", using="default")
    with only_timelines(Narrow):
        yield


@pytest.fixture
def waiting(now):
    def made(name, *notes):
        return [
            schedule(f"narrow.{name}", Order.objects.create(note=note), at=now - timedelta(seconds=99 - number)).task
            for number, note in enumerate(notes)
        ]

    return made


class TestClaimLimited:
    def test_claims_what_a_place_is_free_for(self, waiting, now):
        first, second, third = waiting("call", "a", "a", "a")

        batches = claim_limited(now=now, using="default")

        assert [(batch.task_key, batch.queue, batch.task_ids) for batch in batches] == [
            ("narrow.call", "slow", [first.pk]),
            ("narrow.call", "slow", [second.pk]),
        ]
        claimed = ScheduledTask.objects.filter(state=State.PENDING, claim_token=batches[0].token)
        assert sorted(claimed.values_list("slot", flat=True)) == [1, 2]
        third.refresh_from_db()
        assert (third.state, third.slot) == (State.AVAILABLE, 0)
        assert claim_limited(now=now, using="default") == []

    def test_puts_tasks_of_different_keys_into_one_message(self, waiting, now):
        """Where they are fast: no place waits for another of its key."""
        Pace.objects.create(task_key="narrow.call", seconds=0.001, measured_at=now)
        waiting("call", "a", "b", "c", "a")

        assert sorted(len(batch.task_ids) for batch in claim_limited(now=now, using="default")) == [1, 3]

    def test_puts_what_runs_side_by_side_into_one_message(self, waiting, now):
        waiting("side_by_side", *"aaaa")

        assert [len(batch.task_ids) for batch in claim_limited(now=now, using="default")] == [3]

    def test_leaves_room_for_others_on_their_way(self, waiting, now, settings):
        settings.TIMELINE = {**settings.TIMELINE, "MAX_PENDING": 1}
        waiting("call", "a", "b", "c")

        assert sum(len(batch.task_ids) for batch in claim_limited(now=now, using="default")) == 1
        assert claim_limited(now=now, using="default") == []

    def test_costs_no_statement_where_nothing_has_a_limit(self, now, django_assert_num_queries):
        with only_timelines(), django_assert_num_queries(0):
            assert claim_limited(now=now, using="default") == []


class TestIsPlaceFree:
    def test_says_whether_a_claim_would_find_anything(self, waiting, now):
        before = is_place_free(using="default")
        waiting("call", "a", "a", "a")

        some = is_place_free(using="default")
        claim_limited(now=now, using="default")

        assert (before, some, is_place_free(using="default")) == (False, True, False)
