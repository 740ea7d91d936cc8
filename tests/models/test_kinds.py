"""Which kinds of tasks there are."""

from datetime import timedelta

from tests.databases import VENDOR
from timeline.lifecycle import State
from timeline.models.kinds import ready_kinds, task_keys_there


class TestTaskKeysThere:
    def test_names_each_once(self, make_task):
        for task_key in ("b.two", "a.one", "b.two", "b_c.three", "b.two_more"):
            make_task(task_key=task_key)

        assert sorted(task_keys_there("default")) == ["a.one", "b.two", "b.two_more", "b_c.three"]

    def test_names_none_where_there_is_none(self, db):
        assert task_keys_there("default") == []


class TestReadyKinds:
    def test_tells_the_first_of_each_that_was_asked_for(self, make_task, now):
        """On SQLite not since when: its workers share what is due by priority alone."""
        hours = timedelta(hours=1)
        for task_key, priority, at in (
            ("a.one", 3, now - 9 * hours),
            ("a.one", -2, now),
            ("a.one", -2, now - hours),
            ("b.two", 0, now),
            ("c.three", 0, now),
        ):
            make_task(task_key=task_key, state=State.AVAILABLE, priority=priority, scheduled_at=at)

        ready = ready_kinds(["a.one", "b.two", "d.four"], using="default")

        since = {"a.one": now - hours, "b.two": now} if VENDOR == "postgresql" else {"a.one": None, "b.two": None}
        assert ready == {"a.one": (-2, since["a.one"]), "b.two": (0, since["b.two"])}

    def test_counts_nothing_that_is_not_available(self, make_task):
        for state in set(State) - {State.AVAILABLE}:
            make_task(task_key="a.one", state=state)

        assert ready_kinds(["a.one"], using="default") == {}

    def test_asks_once_however_many_there_are(self, make_task, django_assert_num_queries):
        for _ in range(20):
            make_task(task_key="a.one", state=State.AVAILABLE)

        with django_assert_num_queries(1):
            ready_kinds([f"a.{number}" for number in range(300)], using="default")
