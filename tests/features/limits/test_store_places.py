from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from timeline.features.limits import places as limits_places
from timeline.features.limits.places import LimitedKind, WaitingKey, find_waiting, leave_turn, take
from timeline.lifecycle import State, Trigger
from timeline.models import ScheduledTask

pytestmark = pytest.mark.django_db(transaction=True)

KEY = "trial.remind"


@pytest.fixture(autouse=True)
def turn():
    leave_turn(KEY, "", using="default")


@pytest.fixture
def waiting(make_task, now):
    """Tasks that wait for the keys given, due one after the other."""

    def made(*keys, **columns):
        return [
            make_task(
                state=State.AVAILABLE,
                limit_key=key,
                held_until="attempt",
                scheduled_at=now - timedelta(hours=1) + timedelta(seconds=number),
                task_key=KEY,
                **columns,
            )
            for number, key in enumerate(keys)
        ]

    return made


def find(most=100, places=1):
    return [key.limit_key for key in find_waiting(LimitedKind(KEY, places), most=most, using="default")]


def taken(keys, now, *, places=1, each=1, attempts=0, others=()):
    tasks = take(
        Trigger.START,
        LimitedKind(KEY, places, others=others),
        keys,
        each=each,
        attempts=attempts,
        worker="w",
        now=now,
        using="default",
    )
    return sorted((task.limit_key, task.slot, task.pk) for task in tasks)


class TestFindWaiting:
    def test_looks_at_keys_in_turn(self, waiting):
        waiting("a", "b", "c", "a")

        assert [find(2), find(2), find(2)] == [["a", "b"], ["c", "a"], ["b", "c"]]

    def test_passes_over_what_is_full(self, waiting, make_task):
        waiting("a", "b")
        make_task(state=State.ACTIVE, limit_key="a", slot=1, held_until="attempt", task_key="trial.other")

        assert find() == ["b"]
        assert find(places=2) == ["a", "b"]

    def test_finds_who_has_a_place_before_those_that_wait(self, waiting):
        waiting("a")
        waiting("a", slot=1, attempt=3)

        assert find_waiting(LimitedKind(KEY, 1), most=9, using="default") == [WaitingKey("a", 3)]

    def test_goes_on_behind_what_it_has_looked_at(self, waiting, make_task, monkeypatch):
        """However many keys are full: no look at them takes long, and each key has its turn."""
        monkeypatch.setattr(limits_places, "LOOKED_AT", 10)
        keys = [f"{number:02}" for number in range(25)]
        waiting(*keys)
        for key in keys[:-1]:
            make_task(state=State.ACTIVE, limit_key=key, slot=1, held_until="attempt")

        assert [find(), find(), find()] == [[], [], ["24"]]


class TestTake:
    def test_gives_numbers_that_are_free_to_those_that_have_waited_longest(self, waiting, make_task, now):
        first, second, _third = waiting("a", "a", "a")
        make_task(state=State.PENDING, limit_key="a", slot=2, held_until="attempt")

        assert taken(["a"], now, places=3, each=5) == [("a", 1, first.pk), ("a", 3, second.pk)]
        assert taken(["a"], now, places=3, each=5) == []

    def test_gives_no_more_of_each_key_than_asked_for(self, waiting, now):
        first, _second, other = waiting("a", "a", "b")

        assert taken(["a", "b"], now, places=9) == [("a", 1, first.pk), ("b", 1, other.pk)]

    def test_who_has_a_place_keeps_it(self, waiting, now):
        waiting("a")
        [holder] = waiting("a", slot=1, attempt=2)

        assert taken(["a"], now, attempts=9) == [("a", 1, holder.pk)]
        holder.refresh_from_db()
        assert (holder.state, holder.attempt) == (State.ACTIVE, 3)

    def test_a_limit_that_was_lowered_is_kept(self, waiting, make_task, now):
        waiting("a")
        for slot in (4, 5):
            make_task(state=State.ACTIVE, limit_key="a", slot=slot, held_until="attempt")

        assert taken(["a"], now, places=2) == []

    def test_leaves_what_was_tried_too_often(self, waiting, now):
        waiting("a", attempt=1)

        assert taken(["a"], now) == []
        assert ScheduledTask.objects.filter(state=State.AVAILABLE, slot=0).count() == 1

    def test_leaves_who_is_behind_somebody_of_another_kind_that_competes(self, waiting, make_task, now):
        before, behind = waiting("a", "a")
        between = make_task(
            state=State.AVAILABLE,
            limit_key="a",
            held_until="attempt",
            scheduled_at=before.scheduled_at + timedelta(milliseconds=500),
            task_key="trial.expire",
        )
        others = (("trial.expire", 9),)

        assert taken(["a"], now, places=9, each=9, others=others) == [("a", 1, before.pk)]
        assert taken(["a"], now, places=9, each=9, others=others) == []
        ScheduledTask.objects.filter(pk=between.pk).update(state=State.CANCELLED, finished_at=now, reason_code="exit")
        assert taken(["a"], now, places=9, each=9, others=others) == [("a", 2, behind.pk)]

    def test_waits_for_nobody_of_another_kind_that_sees_no_place(self, waiting, make_task, now):
        """It has a smaller limit, for the same key."""
        make_task(
            state=State.AVAILABLE,
            limit_key="a",
            held_until="attempt",
            task_key="trial.expire",
            scheduled_at=now - timedelta(days=1),
        )
        [row] = waiting("a")
        make_task(state=State.ACTIVE, limit_key="a", slot=1, held_until="attempt")

        assert taken(["a"], now, places=9, others=(("trial.expire", 1),)) == [("a", 2, row.pk)]

    @pytest.mark.parametrize("others", [(), (("trial.other", 1),)])
    def test_can_be_watched_while_debugging(self, waiting, now, others):
        """Where DEBUG is on, Django writes down each statement with its parameters."""
        waiting("a")

        with CaptureQueriesContext(connection) as queries:
            assert len(taken(["a"], now, others=others)) == 1

        assert queries

    def test_logs_the_move(self, waiting, now):
        [row] = waiting("a")

        taken(["a"], now)

        assert list(row.log.values_list("from_state", "to_state", "attempt")) == [("available", "active", 1)]
