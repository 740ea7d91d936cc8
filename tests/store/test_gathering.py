"""Several queries read in one statement give what each gives by itself."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import Count

from timeline import reasons
from timeline.lifecycle import State, Trigger
from timeline.models import Event, Hold, Identity, ScheduledTask, Scope, TimelineRun
from timeline.reading.reason_texts import keep_said, said_of, with_said
from timeline.store.multi_query import Words, gather, gather_now
from timeline.store.transition import Write, apply
from timeline.testing import StoryClock


@pytest.fixture
def rows(make_task, now):
    """Of each kind of value: JSON with what is hard to write, lengths, moments to the microsecond, none at all."""
    Event.objects.create(name="a.b", payload={"deep": [1, None, "ü%s\"'"]}, occurred_at=now, recorded_at=now)
    Hold.objects.create(
        scope=Scope.TASK,
        target="a.b",
        reason="50 %",
        created_at=now + timedelta(microseconds=1),
        park_above=3,
        park_within=timedelta(days=1, hours=2, microseconds=5),
        names=[["a", "1"]],
    )
    make_task(task_key="a.b", state=State.COMPLETED, payload={"x": {"y": [True]}}, result=[1.5, "%"], actor="eva")
    make_task(task_key="a.c", state=State.SCHEDULED)


QUERIES = [
    lambda: ScheduledTask.objects.order_by("task_key"),
    lambda: ScheduledTask.objects.filter(task_key="a.b").union(ScheduledTask.objects.filter(task_key="a.c"), all=True),
    ScheduledTask.objects.none,
    lambda: Event.objects.only("name", "occurred_at"),
    Hold.objects.all,
    TimelineRun.objects.all,
    lambda: Hold.objects.order_by().values_list("scope", "target").annotate(count=Count("pk")),
    lambda: Identity.objects.values_list("site", "polled_at"),
    lambda: ScheduledTask.objects.filter(payload__x__y=[True]).values_list(
        "pk", "scheduled_at", "payload", "finished_at"
    ),
]


def told(found):
    """As plain values, deferred columns left out."""
    return sorted(
        (
            str(
                each
                if isinstance(each, tuple)
                else {key: each.__dict__[key] for key in sorted(each.__dict__) if key != "_state"}
            )
        )
        for each in found
    )


@pytest.mark.usefixtures("rows")
class TestGather:
    def test_gives_what_each_gives_by_itself_in_one_statement(self, django_assert_num_queries):
        alone = [list(query()) for query in QUERIES]

        with django_assert_num_queries(1):
            together = gather([query() for query in QUERIES], using="default")

        assert [told(found) for found in together] == [told(found) for found in alone]
        assert len(together[0]) == len(together[1]) == 2

    def test_gives_models_that_are_there(self):
        [[hold]] = gather([Hold.objects.all()], using="default")

        assert (hold._state.db, hold._state.adding) == ("default", False)
        assert hold == Hold.objects.get()
        assert hold.park_within == timedelta(days=1, hours=2, microseconds=5)

    def test_asks_nothing_of_what_can_be_nothing(self, django_assert_num_queries):
        with django_assert_num_queries(0):
            assert gather([ScheduledTask.objects.none()], using="default") == [[]]

    def test_takes_words_of_ours(self):
        assert gather([Words("SELECT '%' AS told"), Hold.objects.none()], using="default") == [["%"], []]

    def test_keeps_the_order_and_the_end_of_a_query(self):
        [[last]] = gather([ScheduledTask.objects.order_by("-task_key")[:1]], using="default")

        assert last.task_key == "a.c"

    def test_reads_what_logs_say(self, make_task, now, django_assert_num_queries):
        row = make_task(task_key="a.d", state=State.SCHEDULED)
        changed = reasons.ANCHOR_CHANGED(anchor="a")
        apply([Write(task=row, triggers=(Trigger.CANCEL,), reason=changed)], now=now, using="default")

        assert connection.features.has_json_object_function  # On SQLite the first to know asks.
        assert connection.features.supports_json_field

        with django_assert_num_queries(1):
            [tasks] = gather([with_said(ScheduledTask.objects.all())], using="default")
            keep_said(tasks)
            found = {task.task_key: said_of(task) for task in tasks}

        assert found == {"a.b": None, "a.c": None, "a.d": {"sentence": "anchor_changed", "anchor": "a"}}


class TestGatherNow:
    def test_tells_the_clock_in_the_same_statement(self, db, django_assert_num_queries):
        with django_assert_num_queries(1):
            now, [holds] = gather_now([Hold.objects.all()], using="default")

        assert now.utcoffset() == timedelta(0)
        assert holds == []

    def test_asks_a_clock_that_is_set(self, db, now):
        with StoryClock(now) as clock:
            assert gather_now([], using="default") == (clock.now, [])
