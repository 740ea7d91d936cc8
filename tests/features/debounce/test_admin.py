"""The page of a task says which burst it stands for, and until when it waits for quiet."""

from __future__ import annotations

from datetime import timedelta

from tests.admin import conftest as admin
from tests.admin.conftest import detail, text_of
from timeline import Debounce, Timeline, task
from timeline.models import ScheduledTask
from timeline.shortcuts import emit
from timeline.testing import only_timelines

about = admin.about  # Fixtures.
browse = admin.browse
clock = admin.clock
operator = admin.operator
person = admin.person


class Search(Timeline):
    entity = "testapp.Order"

    @task(debounce=Debounce("order.edited", quiet=timedelta(minutes=5), at_latest=timedelta(hours=1)))
    def rebuild(self, order): ...


def test_says_until_when_it_waits_for_quiet(clock, order, operator):
    with only_timelines(Search):
        emit("order.edited", order)
        emit("order.edited", order)
        said = text_of(operator.get(detail(ScheduledTask.objects.get())))

    assert "It stands for 2 events in a burst" in said
    assert "It waits for quiet until" in said
    assert "at the latest" in said
