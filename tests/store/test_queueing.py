"""Queues of runs: what a task at rest waits for, and whether that has come."""

from datetime import UTC, datetime

import pytest

from timeline.features.recurring.store import Behind, clear, end_of, have_ended
from timeline.models import TimelineRun

AT = datetime(2026, 3, 2, 2, tzinfo=UTC)


@pytest.fixture
def run(db):
    return TimelineRun.objects.create(timeline="settlement", key="2026-03-02", started_at=AT, once=True)


class TestBehind:
    def test_is_told_by_the_row_alone(self):
        behind = Behind(timeline="settlement", key="2026-03-02")

        assert behind.columns == {
            "awaits": end_of("settlement"),
            "awaits_key": "2026-03-02",
            "awaits_label": "",
            "awaits_id": "",
            "awaits_other": False,
        }


class TestHaveEnded:
    def test_tells_of_each_whether_its_run_is_open(self, run):
        same_key = Behind(timeline="report", key="2026-03-02")

        assert have_ended([Behind(timeline="settlement", key=run.key), same_key], using="default") == [False, True]

    def test_asks_one_statement(self, run, django_assert_num_queries):
        those = [Behind(timeline="settlement", key=f"2026-03-{day:02}") for day in range(1, 20)]

        with django_assert_num_queries(1):
            have_ended(those, using="default")


class TestClear:
    def test_keeps_it_of_these_runs(self, run):
        clear({run.pk}, using="default")

        run.refresh_from_db()
        assert run.is_cleared

    def test_asks_nothing_of_none(self, django_assert_num_queries, db):
        with django_assert_num_queries(0):
            clear(set(), using="default")
