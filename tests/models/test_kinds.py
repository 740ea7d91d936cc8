"""Which kinds of tasks there are."""

from timeline.models.kinds import task_keys_there


class TestTaskKeysThere:
    def test_names_each_once(self, make_task):
        for task_key in ("b.two", "a.one", "b.two", "b_c.three", "b.two_more"):
            make_task(task_key=task_key)

        assert sorted(task_keys_there("default")) == ["a.one", "b.two", "b.two_more", "b_c.three"]

    def test_names_none_where_there_is_none(self, db):
        assert task_keys_there("default") == []
