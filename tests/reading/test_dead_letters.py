"""Dead letters: what was discarded and not redriven, in groups."""

from __future__ import annotations

from datetime import timedelta

import pytest

from timeline.lifecycle import FINAL, State
from timeline.models import ScheduledTask
from timeline.reading.dead_letters import dead_letters
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
