"""Plots of figures: where bars and points stand, and what the page of health says of them."""

from __future__ import annotations

from datetime import UTC, timedelta

import pytest
from django.urls import reverse

from tests.admin.conftest import text_of
from timeline.admin.health import HEIGHT, in_short, plots
from timeline.features.maintenance.figures import SIZE, Span
from timeline.models import Figure

HEALTH = reverse("admin:timeline_scheduledtask_health")
HOUR = timedelta(hours=1)


def spans_of(now, *given):
    """Spans of an hour: (completed, failed, bucket of the one that was late)."""
    return [
        Span(now + number * HOUR, completed=good, failed=bad, lateness=[int(at == late) for at in range(SIZE)])
        for number, (good, bad, late) in enumerate(given)
    ]


class TestPlots:
    def test_stand_beside_each_other_and_fill_the_height(self, now):
        drawn = plots(spans_of(now, (10, 0, 0), (5, 5, 5), (0, 0, None)), zone=UTC)

        assert [bar.x for bar in drawn.bars] == pytest.approx([0, 33.333, 66.667])
        assert [(bar.good, bar.bad) for bar in drawn.bars] == [(HEIGHT, 0), (HEIGHT / 2, HEIGHT / 2), (0, 0)]
        assert all(bar.bad_y + bar.bad + bar.good == pytest.approx(HEIGHT, abs=0.2) for bar in drawn.bars)
        assert len(drawn.half) == len(drawn.most) == 2
        assert drawn.half[0].y > drawn.half[1].y
        assert [row[0] for row in drawn.rows] == ["03-01 10:00", "03-01 09:00"]

    def test_are_none_where_nothing_happened(self, now):
        assert plots(spans_of(now, (0, 0, None)), zone=UTC) is None

    @pytest.mark.parametrize(
        ("seconds", "said"),
        [(None, "–"), (0.04, "0.0 s"), (9.96, "10.0 s"), (61, "61 s"), (600, "10 min"), (7200, "2 hours")],
    )
    def test_say_lengths_in_short(self, seconds, said):
        assert in_short(seconds) == said


class TestHealth:
    @pytest.fixture(autouse=True)
    def _figures(self, clock):
        hour = clock.now.replace(minute=0, second=0, microsecond=0)
        late = [3] + [0] * (SIZE - 1)
        Figure.objects.create(hour=hour, task_key="care.greet", completed=1234, failed=2, lateness=late)
        Figure.objects.create(hour=hour - 30 * HOUR, task_key="care.call", completed=8)

    def test_draws_a_day_and_says_the_same_in_a_table(self, operator):
        text = text_of(operator.get(HEALTH))

        assert "1234 completed, 2 failed, 0 discarded" in text.replace(",234", "234")
        assert "care.greet" in text
        assert "care.call" not in text

    def test_draws_a_week_or_one_task_where_that_is_asked_for(self, operator):
        text = text_of(operator.get(HEALTH, {"span": "week"}))
        assert "care.call" in text

        text = text_of(operator.get(HEALTH, {"span": "week", "task": "care.call"}))
        assert "Of all tasks" in text
        assert ": 8 completed" in text
        assert "1234 completed" not in text.replace(",234", "234")

    @pytest.mark.parametrize("given", [{"span": "year"}, {"task": "<b>\x00"}, {"task": "care.gone"}])
    def test_bears_whatever_is_asked(self, operator, given):
        assert operator.get(HEALTH, given).status_code == 200
