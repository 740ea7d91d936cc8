"""The rows that runs are planned from, as the model has them, locked or just read."""

from __future__ import annotations

from dataclasses import fields

import pytest
from django.db import transaction

from tests.testapp.models import Order
from timeline import Machine, Timeline, after, on, task
from timeline.lifecycle import State
from timeline.models import ScheduledTask, TimelineRun
from timeline.models.facts import wanted_of
from timeline.registry import registry
from timeline.shortcuts import emit, start
from timeline.store.locks import RowToPlan, lock_rows_to_go_on, lock_rows_to_plan, read_rows_to_plan
from timeline.testing import only_timelines


class Plain(Timeline):
    entity = "testapp.Order"

    @task(after(days=1))
    def look(self, order): ...


class Lamp(Machine):
    """It is lit and put out again and again."""

    entity = "testapp.Order"
    starts_on = "lamp.made"
    initial = "out"
    table = {"out": {"lamp.lit": "lit", "lamp.broken": "over"}, "lit": {"lamp.out": "out"}, "over": {}}
    working = ("out", "lit")

    @task(on("lit", hours=1))
    def warn(self, order): ...

    @task(after(days=9))
    def check(self, order): ...


@pytest.fixture(autouse=True)
def _story(transactional_db, clock, now):
    clock.set(now)
    with only_timelines(Plain, Lamp):
        yield


def known():
    return [(run, registry.timeline(run.timeline)) for run in TimelineRun.objects.order_by("pk")]


def lit(times):
    order = Order.objects.create()
    emit("lamp.made", order)
    for _ in range(times):
        emit("lamp.lit", order)
        emit("lamp.out", order)
    emit("lamp.lit", order)
    return order


def names(rows):
    return sorted((row.task_name, row.occurrence) for row in rows)


def locked_now(wanted):
    with transaction.atomic():
        return [row for rows in lock_rows_to_plan(wanted, using="default").values() for row in rows]


class TestRead:
    def test_gives_all_of_a_plain_run_and_of_a_machine_what_is_of_this_visit(self):
        start(Plain, Order.objects.create())
        lit(times=3)

        rows = read_rows_to_plan(wanted_of(known()), using="default")

        assert names(rows) == [("check", ""), ("look", ""), ("warn", "7")]
        stored = {row.pk: row for row in ScheduledTask.objects.all()}
        read = [column.name for column in fields(RowToPlan)]
        assert all(getattr(row, name) == getattr(stored[row.id], name) for row in rows for name in read)

    def test_asks_nothing_for_no_runs(self, django_assert_num_queries):
        with django_assert_num_queries(0):
            assert read_rows_to_plan(wanted_of([]), using="default") == []


class TestLock:
    def test_gives_the_same_rows_in_order_of_their_ids(self):
        start(Plain, Order.objects.create())
        lit(times=1)
        wanted = wanted_of(known())

        locked = locked_now(wanted)

        assert names(locked) == names(read_rows_to_plan(wanted, using="default"))
        assert [row.pk.hex for row in locked] == sorted(row.pk.hex for row in locked)

    def test_leaves_out_what_has_ended_of_a_visit_for_a_run_that_has_just_moved(self):
        lit(times=1)

        assert names(locked_now(wanted_of(known(), moved=True))) == [("check", ""), ("warn", "3")]


class TestGoOn:
    def test_reads_whole_what_is_open_or_holds_something_and_of_the_rest_what_a_plan_reads(self):
        order = Order.objects.create()
        start(Plain, order)
        rows = {"over": {}, "part": {"occurrence": "1"}, "closed": {"slot": 1, "limit_key": "x"}}
        look = ScheduledTask.objects.get()
        ended = {"state": State.COMPLETED, "finished_at": look.created_at, "reason_code": "done"}
        for revision, columns in enumerate(rows.values(), 2):
            of_row = {
                name: getattr(look, name) for name in ("run", "task_key", "nominal_at", "scheduled_at", "created_at")
            }
            of_row |= {"entity_label": look.entity_label, "entity_id": look.entity_id, "max_attempts": 5}
            ScheduledTask.objects.create(**of_row, **ended, revision=revision, **columns)
        [(run, _timeline)] = known()

        with transaction.atomic():
            found = lock_rows_to_go_on(wanted_of(known()), using="default")[run.pk]

        assert names(found) == names(read_rows_to_plan(wanted_of(known()), using="default"))
        assert {row.revision for row in found if isinstance(row, ScheduledTask)} == {1, 3, 4}
        assert {row.revision for row in found if isinstance(row, RowToPlan)} == {2}
