"""Apportion: how much room there is, and for whom."""

from datetime import timedelta

import pytest
from django.utils import timezone

from timeline import Timeline, task
from timeline.dispatch.claim import FEW, MANY, apportion
from timeline.dispatch.worker_signs import keep_paces
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.testing import only_timelines


class Job(Timeline):
    entity = "testapp.Order"

    @task()
    def one(self, order): ...

    @task()
    def two(self, order): ...

    @task(bulk=500)
    def many(self, orders): ...

    @task(queue="mail")
    def mail(self, order): ...


@pytest.fixture(autouse=True)
def _only_these(db):
    with only_timelines(Job):
        yield


@pytest.fixture
def rows(make_tasks):
    """Have so many rows of a kind: ``rows("job.one", 3, State.PENDING)``."""

    def make(task_key, count=1, state=State.AVAILABLE):
        sent = timezone.now() if state == State.PENDING else None
        make_tasks([{"task_key": task_key, "state": state, "sent_at": sent}] * count)

    return make


@pytest.fixture
def stuck(rows):
    """Have so many rows of a kind whose message has waited for long."""

    def make(task_key, count):
        rows(task_key, count, State.PENDING)
        now = timezone.now()
        held = {"sent_at": now - timedelta(seconds=10), "lease_expires_at": now + timedelta(seconds=50)}
        ScheduledTask.objects.on_their_way().update(**held)

    return make


def taken(most=1000):
    shares, _sizes = apportion(most=most, using="default")
    return {share.task_key: share.size for share in shares}


class TestApportion:
    def test_gives_nothing_where_nothing_is_ready(self, rows):
        rows("job.one", state=State.PENDING)

        assert apportion(most=100, using="default") == ([], {})

    def test_sends_many_messages_as_long_as_none_waits(self, rows):
        """Of a new kind one task each: until somebody knows how long they take, they may be slow."""
        rows("job.one")

        assert taken() == {"job.one": MANY}

    @pytest.mark.parametrize(
        ("pending", "messages"), [(1, FEW - 1), (20, FEW - 1), (21, FEW - 2), (20 * FEW, 0), (99, 0)]
    )
    def test_sends_few_while_some_wait(self, rows, pending, messages):
        """A worker that has something to do goes on by itself; only those that have nothing wait for a message."""
        keep_paces({"job.one": 0.01}, using="default")
        rows("job.one")
        rows("job.one", pending, State.PENDING)

        assert taken() == ({"job.one": 20 * messages} if messages else {})

    def test_does_not_count_what_has_waited_for_long(self, rows, stuck):
        """Its message may be with a worker that is busy for hours: others are still to be woken."""
        rows("job.one")
        stuck("job.two", 50)

        assert taken() == {"job.one": FEW}

    def test_divides_messages_among_kinds(self, rows):
        rows("job.one")
        rows("job.two")
        rows("job.mail")

        assert taken() == {"job.one": MANY / 2, "job.two": MANY / 2, "job.mail": MANY}

    def test_gives_each_kind_its_message_where_there_are_more_kinds(self, rows):
        rows("job.two", FEW - 1, State.PENDING)
        rows("job.one")
        rows("job.two")

        assert taken() == {"job.one": 1, "job.two": 1}

    @pytest.mark.parametrize("task_key", ["job.one", "job.many"])
    def test_gives_a_known_kind_all_there_is(self, rows, task_key):
        keep_paces({"job.one": 0.001}, using="default")
        rows(task_key)

        assert taken() == {task_key: 1000}

    @pytest.mark.parametrize(("most", "size"), [(10, 500), (500, 500), (999, 500), (1000, 1000)])
    def test_takes_whole_messages_of_what_is_declared_to_run_together(self, rows, most, size):
        rows("job.many")

        assert taken(most) == {"job.many": size}

    def test_takes_a_part_where_there_is_room_for_no_more(self, rows, settings):
        settings.TIMELINE = {"MAX_PENDING": 300}
        rows("job.many")

        assert taken() == {"job.many": 300}

    def test_takes_no_more_than_there_is_room_for_of_all_kinds_together(self, rows, settings):
        settings.TIMELINE = {"MAX_PENDING": 600}
        keep_paces({"job.one": 0.0001, "job.two": 0.0001}, using="default")
        for task_key in ("job.many", "job.one", "job.two"):
            rows(task_key)

        assert sum(taken().values()) == 600

    def test_says_how_many_go_into_a_message(self, rows):
        keep_paces({"job.one": 0.02}, using="default")
        for task_key in ("job.one", "job.two", "job.many"):
            rows(task_key)

        _shares, sizes = apportion(most=100, using="default")
        assert [sizes[task_key] for task_key in ("job.one", "job.two", "job.many")] == [10, 1, 500]

    @pytest.mark.parametrize(("pending", "room"), [(0, 8), (5, 3), (6, 2), (7, 0), (8, 0), (12, 0)])
    def test_gives_none_where_less_than_a_quarter_is_free(self, rows, stuck, settings, pending, room):
        settings.TIMELINE = {"MAX_PENDING": 8}
        stuck("job.two", pending)
        rows("job.one")
        rows("job.mail")

        assert taken() == {"job.one": room, "job.mail": 8} if room else {"job.mail": 8}

    def test_asks_as_often_for_many_kinds_as_for_one(self, rows, django_assert_num_queries):
        rows("job.one")
        with django_assert_num_queries(2):
            taken()
        for task_key in ("job.two", "job.many", "job.mail"):
            rows(task_key, 20)

        with django_assert_num_queries(2):
            taken()
