"""Which kinds of tasks there are."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.databases import VENDOR
from timeline.clocks import MachineTime
from timeline.dispatch.worker_signs import keep_paces
from timeline.lifecycle import State
from timeline.models import ScheduledTask, TimelineRun
from timeline.store.task_key_stats import (
    FirstOfKind,
    Kind,
    look_at_kinds,
    ready_kinds,
    task_keys_there,
    timelines_there,
)

SECOND = timedelta(seconds=1)


class TestTaskKeysThere:
    def test_names_each_once_in_one_statement(self, make_task, django_assert_num_queries):
        for task_key in ("b.two", "a.one", "b.two", "b_c.three", "b.two_more"):
            make_task(task_key=task_key)

        with django_assert_num_queries(1):
            found = task_keys_there("default")

        assert sorted(found) == ["a.one", "b.two", "b.two_more", "b_c.three"]

    def test_names_none_where_there_is_none(self, db):
        assert task_keys_there("default") == []


class TestTimelinesThere:
    def test_names_each_once_in_one_statement(self, db, now, django_assert_num_queries):
        for number, (timeline, ended_at) in enumerate([("b", None), ("a", now), ("b", now), ("a_b", None)]):
            code = "exit" if ended_at else ""
            TimelineRun.objects.create(
                timeline=timeline, key=str(number), started_at=now, ended_at=ended_at, end_code=code, end_reason=code
            )

        with django_assert_num_queries(1):
            found = timelines_there("default")

        assert sorted(found) == ["a", "a_b", "b"]

    def test_names_none_where_there_is_none(self, db):
        assert timelines_there("default") == []


class TestReadyKinds:
    def test_tells_the_first_of_each_that_was_asked_for(self, make_task, now):
        """On SQLite not since when: its workers share what is due by priority alone."""
        hours = timedelta(hours=1)
        made = {}
        for task_key, priority, at in (
            ("a.one", 3, now - 9 * hours),
            ("a.one", -2, now),
            ("a.one", -2, now - hours),
            ("b.two", 0, now),
            ("c.three", 0, now),
        ):
            row = make_task(task_key=task_key, state=State.AVAILABLE, priority=priority, scheduled_at=at)
            made[task_key, priority, at] = row.pk

        ready = ready_kinds(["a.one", "b.two", "d.four"], using="default")

        firsts = {"a.one": (-2, now - hours), "b.two": (0, now)}
        if VENDOR == "postgresql":
            assert ready == {key: FirstOfKind(*first, made[key, *first]) for key, first in firsts.items()}
        else:
            assert ready == {key: FirstOfKind(priority, None) for key, (priority, _at) in firsts.items()}

    def test_counts_nothing_that_is_not_available(self, make_task):
        for state in set(State) - {State.AVAILABLE}:
            make_task(task_key="a.one", state=state)

        assert ready_kinds(["a.one"], using="default") == {}

    def test_asks_once_however_many_there_are(self, make_task, django_assert_num_queries):
        for _ in range(20):
            make_task(task_key="a.one", state=State.AVAILABLE)

        with django_assert_num_queries(1):
            ready_kinds([f"a.{number}" for number in range(300)], using="default")

    def test_tells_the_first_of_each(self, make_task, now):
        make_task(task_key="job.one", state=State.AVAILABLE, priority=1, scheduled_at=now - 9 * SECOND)
        make_task(task_key="job.one", state=State.AVAILABLE, priority=0, scheduled_at=now - SECOND)
        first = make_task(task_key="job.one", state=State.AVAILABLE, priority=0, scheduled_at=now - 2 * SECOND)
        make_task(task_key="job.two", state=State.SCHEDULED, scheduled_at=now - SECOND)
        make_task(task_key="job.three", state=State.AVAILABLE)

        found = ready_kinds(["job.one", "job.two"], using="default")

        assert found == {
            "job.one": FirstOfKind(0, *((now - 2 * SECOND, first.pk) if VENDOR == "postgresql" else (None,)))
        }


class TestLookAtKinds:
    KINDS = ("a.one", "b.two", "c.three", "d.four")

    def look(self, lately=2, leases_valid_at=None):
        return look_at_kinds(
            self.KINDS, lately=timedelta(seconds=lately), leases_valid_at=leases_valid_at, using="default"
        )

    @pytest.fixture
    def on_its_way(self, make_task):
        """Make a claimed task whose lease ends in so many seconds, and that was sent so many ago."""

        def claimed(task_key, seconds, ago=None):
            task = make_task(task_key=task_key, state=State.PENDING)
            ends = MachineTime(timedelta(seconds=seconds))
            sent = None if ago is None else MachineTime(timedelta(seconds=-ago))
            ScheduledTask.objects.filter(pk=task.pk).update(lease_expires_at=ends, sent_at=sent)

        return claimed

    def test_tells_how_many_are_on_their_way_and_how_fast_they_are(self, make_task, on_its_way):
        make_task(task_key="a.one", state=State.AVAILABLE)
        for task_key, seconds in (("a.one", 14), ("a.one", 5), ("b.two", 5), ("e.unasked", 14)):
            on_its_way(task_key, seconds, ago=15 - seconds)
        keep_paces({"a.one": 0.5, "c.three": 1}, using="default")

        found = self.look()

        nothing = Kind(0, 0, None)
        assert found == {"a.one": (2, 1, 0.5), "b.two": (1, 0, None), "c.three": (0, 0, 1), "d.four": nothing}

    @pytest.mark.parametrize(("ends", "ago", "lately"), [(900, 1, 1), (900, 30, 0), (-1, 1, 0), (59, None, 0)])
    def test_tells_what_was_sent_lately_however_long_it_is_waited_for(self, on_its_way, ends, ago, lately):
        """What was handed back is on its way no more."""
        on_its_way("a.one", ends, ago)

        assert self.look()["a.one"] == (1, lately, None)

    @pytest.mark.only_postgresql
    def test_counts_only_what_is_held_for_longer_than_is_known(self, on_its_way):
        on_its_way("a.one", -5)
        on_its_way("a.one", 5)

        assert self.look(leases_valid_at=datetime.now(UTC))["a.one"].tasks == 1

    def test_is_one_statement(self, on_its_way, django_assert_num_queries):
        for task_key in self.KINDS:
            on_its_way(task_key, 55)

        with django_assert_num_queries(1):
            assert len(self.look()) == 4
