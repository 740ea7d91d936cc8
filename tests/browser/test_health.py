"""Health in a real browser: light and dark, wide and narrow."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from timeline.features.maintenance.figures import SIZE
from timeline.lifecycle import State
from timeline.models import Figure, Identity, Sign

HEALTH = reverse("admin:timeline_scheduledtask_health")


@pytest.fixture
def sick(clock, make_task):
    """Nobody polls; something was discarded, something is of nobody; a worker is missed."""
    long_ago = timezone.now() - timedelta(days=1)
    Identity.objects.update_or_create(pk=1, defaults={"site": "", "polled_at": long_ago, "adopted_at": long_ago})
    make_task(task_key="care.call", state=State.DISCARDED, error="ConnectionError: no", reason_code="error")
    make_task(task_key="gone.averylongnamewithoutanyblank_averylongnamewithoutanyblank", occurrence="1")
    hour = clock.now.replace(minute=0, second=0, microsecond=0)
    for ago in range(20):
        late = [7 + ago, *[ago] * (SIZE - 1)]
        at, key = hour - timedelta(hours=ago), "care.call_averylongnamewithoutanyblank_averylongname"
        Figure.objects.create(hour=at, task_key=key, completed=50 * ago + 7, failed=3 * ago, lateness=late)
    Sign.objects.create(worker="worker-1@host-with-a-long-name.example", seen_at=timezone.now())
    Sign.objects.create(worker="worker-2@host-with-a-long-name.example", seen_at=long_ago)


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_can_be_read(start_browser, staff, sick, width, dark):
    browser = start_browser(width=width, dark=dark)
    browser.log_in(staff)

    browser.open(HEALTH)

    browser.wait_for(".tl-findings")
    browser.click(".tl-plot ~ details summary")
    assert browser.barriers() == []
    assert browser.width_needed() <= width
