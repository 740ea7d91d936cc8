"""When timelines start by the clock, on the pages."""

from __future__ import annotations

import pytest

from tests.admin import conftest as admin
from tests.admin.conftest import ENTITY, detail, text_of
from timeline import Timeline, after, daily, task
from timeline.features.recurring.verbs import NextBeginnings, recur
from timeline.models import ScheduledTask
from timeline.testing import only_timelines

about = admin.about  # Fixtures.
browse = admin.browse
clock = admin.clock
operator = admin.operator
person = admin.person

SAID = "every day at 02:00 in Europe/Berlin, next 2 March 2026 01:00 (02:00 there)"  # The site is in UTC.


class Settlement(Timeline):
    """Settles."""

    starts_on = daily("02:00", zone="Europe/Berlin")

    @task(after())
    def settle(self): ...


@pytest.fixture
def ahead(clock, now):
    """The run ahead."""
    with only_timelines(Settlement):
        recur(NextBeginnings(), now=now, using="default")
        yield ScheduledTask.objects.get()


class TestSchedules:
    def test_stands_on_the_page_of_a_task(self, operator, ahead):
        page = text_of(operator.get(detail(ahead)))

        assert f"<dt>Schedule</dt><dd>{SAID}</dd>" in page

    def test_stands_on_the_page_of_the_system(self, operator, ahead):
        page = text_of(operator.get(ENTITY, {"label": "", "id": ""}))

        assert f"<dt>settlement</dt><dd>{SAID}</dd>" in page

    def test_stands_on_no_page_of_others(self, operator, about, order):
        row = about(order)

        assert "<dt>Schedule</dt>" not in text_of(operator.get(detail(row)))
        assert "By the clock" not in text_of(operator.get(ENTITY, {"label": "testapp.order", "id": order.pk}))
