"""Rows without a definition are cancelled where a person has asked for it, and by nothing else."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.testapp.models import Order
from timeline import Timeline, after, task
from timeline.clocks import story_now
from timeline.exceptions import InvalidInput
from timeline.features.plans.drift import cancel_undefined, is_left_behind, undefined_rows
from timeline.models import LogEntry, ScheduledTask, TimelineRun
from timeline.shortcuts import start
from timeline.testing import only_timelines


class Care(Timeline):
    entity = "testapp.Order"

    @task(after(days=10))
    def remind(self, order): ...

    @task(after(days=20))
    def close(self, order): ...


class Rest(Timeline):
    name = "care"
    entity = "testapp.Order"

    @task(after(days=10))
    def remind(self, order): ...


@pytest.fixture(autouse=True)
def _three(db, clock, now):
    clock.set(now)
    with only_timelines(Care):
        for _ in range(3):
            start(Care, Order.objects.create())
    with only_timelines():
        yield


def cancelled(timeline="care", **options):
    return list(cancel_undefined(timeline, clock=story_now, using="default", **options))


class TestUndefinedRows:
    def test_are_those_of_tasks_that_nobody_declares(self, make_task):
        make_task(task_key="careful.work")
        with only_timelines(Rest):
            found = set(undefined_rows("care", using="default").values_list("task_key", flat=True))

        assert found == {"care.close"}

    def test_are_open(self):
        cancelled()

        assert not undefined_rows("care", using="default").exists()


class TestIsLeftBehind:
    def test_is_so_of_what_has_open_rows_or_runs(self, make_task):
        make_task(task_key="promo.call")

        assert is_left_behind("care", using="default")
        assert is_left_behind("promo", using="default")

    @pytest.mark.parametrize("timeline", ["car", "care.remind", ""])
    def test_is_not_so_of_what_is_called_otherwise(self, timeline):
        assert not is_left_behind(timeline, using="default")

    def test_is_not_so_of_what_is_declared(self):
        with only_timelines(Rest):
            assert not is_left_behind("care", using="default")


class TestCancelUndefined:
    @pytest.mark.parametrize(("size", "counts"), [(1000, [6]), (2, [4, 2])])
    def test_ends_the_runs_of_a_timeline_that_is_gone_in_batches(self, size, counts):
        assert cancelled(size=size, actor="ada") == counts

        assert {(row.state, row.reason_code) for row in ScheduledTask.objects.all()} == {("cancelled", "definition")}
        assert {entry.actor for entry in LogEntry.objects.all()} == {"ada"}
        assert not TimelineRun.objects.open().exists()

    def test_leaves_the_runs_of_a_timeline_that_is_declared(self, make_task):
        make_task(task_key="care.gone")
        with only_timelines(Rest):
            assert cancelled() == [1]

        assert ScheduledTask.objects.open().count() == 6

    def test_leaves_others(self, make_task):
        other = make_task(task_key="careful.work")

        cancelled()

        other.refresh_from_db()
        assert other.state == "scheduled"

    def test_does_nothing_a_second_time(self):
        cancelled()

        assert cancelled() == []

    def test_takes_as_many_statements_for_many_as_for_few(self):
        def statements():
            with CaptureQueriesContext(connection) as queries:
                cancelled()
            return len(queries)

        few = statements()
        with only_timelines(Care):
            for _ in range(30):
                start(Care, Order.objects.create())

        assert statements() == few

    @pytest.mark.parametrize(("field", "value"), [("actor", "a" * 999), ("batch_size", 0)])
    def test_refuses_what_does_not_do(self, field, value):
        with pytest.raises(InvalidInput, match=field):
            cancelled(**{"size" if field == "batch_size" else field: value})
