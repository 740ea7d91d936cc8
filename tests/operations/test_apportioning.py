"""Apportion: how much room there is, and for whom."""

import pytest

from timeline import Timeline, task
from timeline.lifecycle import State
from timeline.operations._apportioning import FIRST, apportion
from timeline.operations.pacing import keep_paces
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
def rows(make_task):
    """Have so many rows of a kind: ``rows("job.one", 3, State.PENDING)``."""

    def make(task_key, count=1, state=State.AVAILABLE):
        for _ in range(count):
            make_task(task_key=task_key, state=state)

    return make


def taken(most=1000):
    shares, _sizes = apportion(most=most, using="default")
    return {share.task_key: share.size for share in shares}


class TestApportion:
    def test_gives_nothing_where_nothing_is_ready(self, rows):
        rows("job.one", state=State.PENDING)

        assert apportion(most=100, using="default") == ([], {})

    def test_leaves_of_a_new_kind_all_but_so_many(self, rows):
        """Until somebody knows how long they take: they may be slow, and are sent one by one."""
        rows("job.one")

        assert taken() == {"job.one": FIRST}
        rows("job.one", 30, State.PENDING)
        assert taken() == {"job.one": FIRST - 30}

    @pytest.mark.parametrize("task_key", ["job.one", "job.many"])
    def test_gives_a_known_kind_all_there_is(self, rows, task_key):
        keep_paces({"job.one": 0.001}, using="default")
        rows(task_key)

        assert taken() == {task_key: 1000}

    def test_says_how_many_go_into_a_message(self, rows):
        keep_paces({"job.one": 0.02}, using="default")
        for task_key in ("job.one", "job.two", "job.many"):
            rows(task_key)

        assert apportion(most=100, using="default")[1] == {"job.one": 10, "job.two": 1, "job.many": 500}

    @pytest.mark.parametrize(("pending", "room"), [(0, 8), (5, 3), (6, 2), (7, 0), (8, 0), (12, 0)])
    def test_gives_none_where_less_than_a_quarter_is_free(self, rows, settings, pending, room):
        settings.TIMELINE = {"MAX_PENDING": 8}
        rows("job.two", pending, State.PENDING)
        rows("job.one")
        rows("job.mail")

        assert taken() == {"job.one": room, "job.mail": 8} if room else {"job.mail": 8}

    def test_asks_as_often_for_many_kinds_as_for_one(self, rows, django_assert_num_queries):
        rows("job.one")
        with django_assert_num_queries(3):
            taken()
        for task_key in ("job.two", "job.many", "job.mail"):
            rows(task_key, 20)

        with django_assert_num_queries(3):
            taken()
