"""Figures by the hour, read: summed up over tasks and hours, with quantiles."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from timeline.features.maintenance.figures import SIZE, busiest, figures, spans
from timeline.models import Figure

NOW = datetime(2026, 3, 1, 9, 40, tzinfo=UTC)
HOUR = timedelta(hours=1)


def figure(hours_ago, key="trial.remind", late=None, **counts):
    """What became of a task in an hour; ``late``: bucket → how many."""
    buckets = [(late or {}).get(at, 0) for at in range(SIZE)]
    hour = NOW.replace(minute=0) - hours_ago * HOUR
    return Figure.objects.create(hour=hour, task_key=key, lateness=buckets, duration=[], **counts)


@pytest.fixture
def _figures(db):
    figure(0, completed=5, late={0: 4, 4: 1})
    figure(0, "trial.expire", completed=2, discarded=1)
    figure(3, completed=7, failed=2, cancelled=1)
    figure(23, completed=1)
    figure(24, completed=100)


@pytest.mark.usefixtures("_figures")
class TestSpans:
    def test_sum_up_tasks_by_the_hour_the_oldest_first(self):
        found = spans(figures(hours=24, now=NOW, using="default"), hours=24, width=1, now=NOW)

        assert len(found) == 24
        assert (found[0].begins, found[-1].begins) == (NOW.replace(minute=0) - 23 * HOUR, NOW.replace(minute=0))
        assert [(at, span.completed) for at, span in enumerate(found) if not span.is_empty] == [
            (0, 1),
            (20, 7),
            (23, 7),
        ]
        assert (found[20].failed, found[20].cancelled, found[23].discarded) == (2, 1, 1)
        assert found[23].late_p50 < 0.1
        assert 2 < found[23].late_p95 <= 5
        assert found[20].late_p50 is None

    def test_are_of_several_hours(self):
        found = spans(figures(hours=168, now=NOW, using="default"), hours=168, width=6, now=NOW)

        assert len(found) == 28
        assert sum(span.completed for span in found) == 115

    def test_are_of_one_task(self):
        found = spans(figures(hours=24, now=NOW, using="default"), hours=24, width=1, task_key="trial.expire", now=NOW)

        assert sum(span.completed for span in found) == 2

    def test_take_one_statement(self, django_assert_num_queries):
        with django_assert_num_queries(1):
            spans(figures(hours=168, now=NOW, using="default"), hours=168, width=6, now=NOW)


@pytest.mark.usefixtures("_figures")
class TestBusiest:
    def test_are_those_of_which_most_ended(self):
        assert busiest(figures(hours=24, now=NOW, using="default"), most=5) == [
            ("trial.remind", 13, 2),
            ("trial.expire", 2, 1),
        ]
        assert busiest(figures(hours=2, now=NOW, using="default"), most=1) == [("trial.remind", 5, 0)]
