from __future__ import annotations

import pytest

from tests.testapp.models import Order
from timeline import Limit, Timeline, after, task
from timeline.features.limits.keys import compete, hand_on, handed_on
from timeline.lifecycle import State, Trigger
from timeline.models import ScheduledTask
from timeline.shortcuts import emit_many, schedule, start
from timeline.store.new_rows import next_revision
from timeline.store.transition import Write
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db


class Competing(Timeline):
    entity = "testapp.Order"
    starts_on = "order.placed"

    @task(after(hours=1), limit=Limit(1, by="zone", until="end"))
    def visit(self, order): ...

    @task(after(hours=1), limit=3)
    def call(self, order): ...

    @task(after(hours=1))
    def note(self, order): ...


@pytest.fixture(autouse=True)
def known():
    with only_timelines(Competing):
        yield


def keys():
    return sorted(ScheduledTask.objects.values_list("task_key", "limit_key", "held_until"))


WANTED = [
    ("competing.call", "competing.call", "attempt"),
    ("competing.note", "", ""),
    ("competing.visit", "competing.visit:Europe/Berlin", "opened"),
]


class TestCompete:
    def test_of_a_run(self):
        start(Competing, Order.objects.create(zone="Europe/Berlin"))

        assert keys() == WANTED

    def test_of_many_runs(self):
        orders = [Order.objects.create(zone="Europe/Berlin") for _number in range(10)]

        emit_many("order.placed", orders)

        assert keys() == [row for row in WANTED for _number in range(10)]

    def test_of_what_is_scheduled_by_itself(self, now):
        schedule("competing.visit", Order.objects.create(zone="Asia/Tokyo"), at=now)

        assert keys() == [("competing.visit", "competing.visit:Asia/Tokyo", "opened")]

    def test_asks_nothing_where_no_field_decides(self, make_task, django_assert_num_queries):
        with django_assert_num_queries(0):
            compete(
                [ScheduledTask(task_key="competing.note"), ScheduledTask(limit_key="a", held_until="end")], using="x"
            )


class TestHandedOn:
    @pytest.mark.parametrize(
        ("held_until", "state", "slot", "then"),
        [
            ("end", "active", 2, "end+"),
            ("opened", "active", 2, "opened+"),
            ("opened", "discarded", 2, "opened+"),
            ("end+", "pending", 2, "end+"),
            ("opened+", "available", 2, "opened+"),
            ("attempt", "active", 2, None),
            ("end", "pending", 2, None),
            ("end", "active", 0, None),
            ("opened+", "available", 0, None),
        ],
    )
    def test_is_the_place_of_what_is_half_done_and_keeps_it(self, held_until, state, slot, then):
        task = ScheduledTask(limit_key="k", slot=slot, held_until=held_until, state=state)

        assert handed_on(task).get("held_until") == then


class TestNextRevision:
    def test_of_a_kind_that_is_not_known_here_takes_nothing_over_that_was_opened(self, make_task, now):
        """It competes as before, and nothing is half done."""
        opened = make_task(
            task_key="gone.visit", state=State.CANCELLED, limit_key="k", slot=0, held_until="opened+", attempt=0
        )

        again = next_revision(opened, now, now=now)

        assert (again.limit_key, again.slot, again.held_until) == ("k", 0, "opened")


class TestHandOn:
    def test_has_the_old_row_give_up_what_the_new_one_takes(self):
        old = ScheduledTask(limit_key="k", slot=2, held_until="end+", attempt=1, state=State.RETRYABLE)
        other = ScheduledTask(limit_key="k", slot=3, held_until="end+", attempt=1, state=State.RETRYABLE)
        new = ScheduledTask(previous_id=old.pk, limit_key="elsewhere")

        writes = hand_on(
            [Write(task=each, triggers=(Trigger.CANCEL,)) for each in (old, other)], [new], using="default"
        )

        assert (new.limit_key, new.slot, new.held_until) == ("k", 2, "end+")
        assert [write.slot for write in writes] == [0, None]
