"""How fast this process gets on with each kind, and so how many it starts together."""

import pytest

from timeline import models
from timeline.dispatch.worker_signs import keep_paces
from timeline.engine.groups import BUDGET
from timeline.worker.process import LARGEST, PaceOfKinds

IN_TIME = BUDGET.total_seconds()


def kept():
    """What the database says: task key → seconds."""
    return dict(models.Pace.objects.values_list("task_key", "seconds"))


class TestMost:
    def test_is_one_of_a_kind_not_seen_before(self):
        pace = PaceOfKinds()
        pace.took("a.fast", 100, 0.001)

        assert pace.most("b.unknown") == 1

    def test_grows_with_what_proved_fast(self):
        """As many as have been run: the group doubles each time."""
        pace, groups = PaceOfKinds(), []

        for _ in range(5):
            groups.append(pace.most("a.fast"))
            pace.took("a.fast", groups[-1], groups[-1] * IN_TIME / 1000)

        assert groups == [1, 1, 2, 4, 8]

    def test_is_what_fits_into_a_groups_time(self):
        pace = PaceOfKinds()
        pace.took("a.fast", 1000, 1000 * IN_TIME / 20)

        assert pace.most("a.fast") == 20

    def test_is_no_more_than_the_largest(self):
        pace = PaceOfKinds()
        pace.took("a.fast", 100_000, 0)

        assert pace.most("a.fast") == LARGEST

    def test_is_one_of_a_slow_kind(self):
        pace = PaceOfKinds()
        pace.took("a.slow", 1000, 1000.0)

        assert pace.most("a.slow") == 1

    def test_falls_when_a_fast_kind_turns_slow(self):
        pace = PaceOfKinds()
        pace.took("a.fast", 1000, 1000 * IN_TIME / 100)

        pace.took("a.fast", 1, 10)

        assert pace.most("a.fast") == 1


class TestKeep:
    @pytest.fixture(autouse=True)
    def _at_once(self, db, monkeypatch):
        monkeypatch.setattr("timeline.worker.process.KEEP_EVERY", -1)

    def test_writes_the_averages_down(self):
        pace = PaceOfKinds()
        pace.took("a.fast", 10, 0.1)
        pace.took("a.slow", 1, 30)

        pace.keep(using="default")

        assert kept() == {"a.fast": pytest.approx(0.01), "a.slow": 30}

    def test_writes_nothing_while_they_stay_alike(self, django_assert_num_queries):
        pace = PaceOfKinds()
        pace.took("a.fast", 10, 0.1)
        pace.keep(using="default")

        pace.took("a.fast", 10, 0.12)

        with django_assert_num_queries(0):
            pace.keep(using="default")

    def test_writes_what_has_changed(self):
        pace = PaceOfKinds()
        pace.took("a.fast", 10, 0.1)
        pace.keep(using="default")

        pace.took("a.fast", 1, 1)
        pace.keep(using="default")

        assert kept()["a.fast"] == pytest.approx(0.01 + 0.2 * 0.99)

    def test_takes_the_last_word_of_several_processes(self):
        keep_paces({"a.fast": 3, "a.slow": 4}, using="default")

        keep_paces({"a.fast": 5}, using="default")

        assert kept() == {"a.fast": 5, "a.slow": 4}


class TestKeepEvery:
    def test_few_seconds_at_most(self, db, django_assert_num_queries):
        pace = PaceOfKinds()
        pace.took("a.fast", 10, 0.1)
        pace.keep(using="default")
        pace.took("a.fast", 1, 100)

        with django_assert_num_queries(0):
            pace.keep(using="default")
