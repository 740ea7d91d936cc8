"""Dead letters: what was discarded and not redriven, in groups."""

from __future__ import annotations

from datetime import timedelta

import pytest

from timeline.lifecycle import FINAL, State
from timeline.models import ScheduledTask
from timeline.reading.dead_letters import causes_of, dead_letters, failures_by_hour
from timeline.shortcuts import redrive

ONE, OTHER = "1" * 16, "2" * 16


@pytest.fixture
def dead(make_task, now):
    """Make a dead letter: ``dead(ONE, hours=1)``, so long before now."""

    def make(fingerprint="", hours=0, **columns):
        at = now - timedelta(hours=hours)
        said = {"error": "ValueError: no", "fingerprint": fingerprint, "finished_at": at}
        return make_task(state=State.DISCARDED, **said, **columns)

    return make


def groups(group=""):
    return dead_letters(ScheduledTask.objects.all(), group)


class TestDeadLetters:
    def test_groups_what_failed_alike_with_count_times_and_a_sample(self, dead, now):
        rows = [dead(ONE, hours) for hours in (3, 5, 4)]
        dead(OTHER, 1)

        [last, found] = groups()

        assert (last.group, last.count) == (OTHER, 1)
        assert (found.group, found.count, found.task_key) == (ONE, 3, rows[0].task_key)
        assert (found.first_at, found.last_at) == (now - timedelta(hours=5), now - timedelta(hours=3))
        assert found.sample == max(rows, key=lambda row: row.pk)
        assert found.message == "ValueError: no"

    def test_leaves_out_what_was_redriven_and_what_ended_otherwise(self, dead, make_task):
        for state in FINAL - {State.DISCARDED}:
            make_task(state=state)
        redrive(dead(ONE), reason="mended")

        assert groups() == []

    def test_takes_a_fixed_number_of_statements(self, dead, django_assert_num_queries):
        for number in range(12):
            dead(f"{number:016}")

        with django_assert_num_queries(2):
            assert len(groups()) == 12

    def test_quotes_no_error_to_who_may_not_read_it(self, dead):
        dead(ONE)

        [found] = groups()

        assert found.as_data()["message"] == "ValueError: no"
        assert found.as_data(payload=False)["message"] == ""


class TestCauses:
    def dead(self, make_task, mark, key, error="OSError: disk 3 is full", **columns):
        given = {"reason_code": "error", "fingerprint": mark * 16, "error": error, **columns}
        return make_task(task_key=key, state=State.DISCARDED, **given)

    def told(self):
        return [
            [(each.task_key, each.count) for each in cause.groups] for cause in causes_of(ScheduledTask.objects.all())
        ]

    def test_have_all_kinds_with_the_same_error_the_largest_first(self, make_task):
        for mark, key, entity in (("1", "care.call", "1"), ("2", "care.greet", "1"), ("2", "care.greet", "2")):
            self.dead(make_task, mark, key, f"OSError: disk {entity} is full", occurrence=entity)

        assert self.told() == [[("care.greet", 2), ("care.call", 1)]]

    def test_of_lost_workers_are_one_whatever_failed_before(self, make_task):
        for mark, key, error in (("1", "care.call", "OSError: disk is full"), ("2", "care.greet", "")):
            self.dead(make_task, mark, key, error, reason_code="worker_lost")

        assert len(causes_of(ScheduledTask.objects.all())) == 1

    def test_are_apart_where_nothing_says_that_they_are_one(self, make_task):
        for mark, key in (("1", "care.call"), ("2", "care.greet")):
            self.dead(make_task, mark, key, "KeyError: 'name'")

        assert sorted(self.told()) == [[("care.call", 1)], [("care.greet", 1)]]

    def test_count_all_versions_and_name_the_first(self, make_task, now):
        for version, ago, entity in (("b" * 16, 1, "1"), ("a" * 16, 2, "2"), ("b" * 16, 3, "3")):
            at = {"definition_hash": version, "finished_at": now - timedelta(hours=ago), "occurrence": entity}
            self.dead(make_task, "1", "care.call", **at)

        [cause] = causes_of(ScheduledTask.objects.all())

        assert (cause.count, cause.version) == (3, "b" * 16)
        assert (cause.first.first_at, cause.latest.last_at) == (now - timedelta(hours=3), now - timedelta(hours=1))

    def test_have_their_tasks_and_no_others(self, make_task):
        ours = self.dead(make_task, "1", "care.call")
        self.dead(make_task, "2", "care.greet", "KeyError: 'name'")
        self.dead(make_task, "3", "care.call", "ValueError: no more")

        found = {cause.groups[0].group: cause for cause in causes_of(ScheduledTask.objects.all())}

        assert list(found["1" * 16].among(ScheduledTask.objects.all())) == [ours]

    def test_are_read_in_two_statements(self, make_task, django_assert_num_queries):
        for mark in "1234":
            self.dead(make_task, mark, "care.call", occurrence=mark)

        with django_assert_num_queries(2):
            assert self.told() == [[("care.call", 1)] * 4]


class TestFailuresByHour:
    def test_are_counted_by_cause_and_hour_since_then(self, make_task, now):
        for mark, minutes in (("1", 5), ("1", 20), ("2", 70), ("2", 700)):
            at = now - timedelta(minutes=minutes)
            self.made(make_task, mark, at)
        causes = causes_of(ScheduledTask.objects.all())

        found = failures_by_hour(ScheduledTask.objects.all(), causes, now - timedelta(hours=3))

        first = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=1)
        assert found == {causes[0].key: {first: 2, first - timedelta(hours=1): 1}}
        assert failures_by_hour(ScheduledTask.objects.all(), [], now) == {}

    def made(self, make_task, mark, at):
        given = {
            "task_key": f"care.task{mark}",
            "error": "OSError: disk is full",
            "reason_code": "error",
            "finished_at": at,
        }
        make_task(state=State.DISCARDED, fingerprint=mark * 16, occurrence=str(at.timestamp()), **given)
