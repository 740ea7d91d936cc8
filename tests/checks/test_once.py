"""Check of timelines that begin once."""

import pytest

from timeline import Timeline, after, task
from timeline.checks import check_once
from timeline.lifecycle import RunEnd
from timeline.models import TimelineRun
from timeline.runs import end
from timeline.testing import only_timelines


class Invoicing(Timeline):
    entity = "testapp.Order"
    once = True

    @task(after(days=1))
    def invoice(self, order):
        return None


@pytest.fixture(autouse=True)
def _only_these(db):
    with only_timelines(Invoicing):
        yield


def begun(order, now):
    return TimelineRun.objects.create(
        timeline="invoicing", entity_label="testapp.order", entity_id=str(order.pk), started_at=now
    )


def check():
    return check_once(None, databases=["default"])


class TestCheckOnce:
    def test_names_what_began_again_and_is_open(self, order, now):
        end([begun(order, now)], RunEnd.FINISHED, now=now, using="default")
        begun(order, now)

        [message] = check()

        assert message.id == "timeline.W011"
        assert f"invoicing of testapp.order {order.pk}" in message.msg

    def test_is_silent_of_a_run_that_began_once(self, order, now):
        begun(order, now)

        assert check() == []

    def test_is_silent_when_it_has_ended(self, order, now):
        end([begun(order, now)], RunEnd.FINISHED, now=now, using="default")
        end([begun(order, now)], RunEnd.FINISHED, now=now, using="default")

        assert check() == []
