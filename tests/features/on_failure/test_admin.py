"""The pages of a failed task and of its handler lead to each other."""

from __future__ import annotations

import pytest

from tests.admin import conftest as admin
from tests.admin.conftest import detail, text_of
from timeline import Discard, Timeline, after, task
from timeline.models import ScheduledTask
from timeline.shortcuts import start
from timeline.testing import only_timelines

about = admin.about  # Fixtures.
browse = admin.browse
clock = admin.clock
operator = admin.operator
person = admin.person


class Paying(Timeline):
    entity = "testapp.Order"

    @task()
    def tell(self, order): ...

    @task(after(), on_failure=tell)
    def pay(self, order):
        raise Discard("no such account")


@pytest.fixture
def failed(clock, order):
    with only_timelines(Paying), clock.failing():
        start("paying", order)
        clock.run_due()
        yield ScheduledTask.objects.get(task_key="paying.pay")


def test_lead_to_each_other(failed, operator):
    row = ScheduledTask.objects.get(task_key="paying.tell")

    of_failed, of_handler = (text_of(operator.get(detail(each))) for each in (failed, row))

    assert "After the failure" in of_failed
    assert f"{row.pk}/change/" in of_failed
    assert "Because of" in of_handler
    assert f"{failed.pk}/change/" in of_handler
