"""Two people decide at the same moment, or one and the host's code: the first decision stands, and there is but one."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest

from tests.postgresql import conftest as postgresql
from tests.testapp.models import Order
from timeline import Timeline, approval, task
from timeline.exceptions import AlreadyDecided
from timeline.models import Event, ScheduledTask
from timeline.shortcuts import approve, emit, reject
from timeline.testing import only_timelines

at_once = postgresql.at_once  # Fixtures.

pytestmark = pytest.mark.django_db(transaction=True)
ROUNDS = 20


class Refunding(Timeline):
    entity = "testapp.Order"
    starts_on = "refund.asked"

    @task(approval("refund", by="shop.approve_refund", within=timedelta(days=2)))
    def refund(self, order): ...


@pytest.fixture(autouse=True)
def _only_these():
    with only_timelines(Refunding):
        yield


def asked():
    order = Order.objects.create()
    emit("refund.asked", order)
    return ScheduledTask.objects.get(task_key="refunding.refund", entity_id=str(order.pk))


class TestTwoPeople:
    def test_decide_once(self, at_once):
        for _round in range(ROUNDS):
            row = asked()

            done = at_once(partial(approve, row, actor="ada"), partial(reject, row, actor="ben"))

            [refused] = [answer for answer in done if isinstance(answer, Exception)]
            [event] = Event.objects.filter(entity_id=row.entity_id, name__startswith="refund.", actor__gt="")
            assert isinstance(refused, AlreadyDecided)
            assert (refused.event, refused.actor) == (event.name, event.actor)
            row.refresh_from_db()
            assert row.state == "available"


class TestAPersonAndTheHostsCode:
    def test_neither_wait_for_ever_nor_is_the_person_told_a_wrong_thing(self, at_once):
        for _round in range(ROUNDS):
            row = asked()

            done = at_once(
                partial(approve, row, actor="ada"), partial(emit, "refund.rejected", row.entity_ref, actor="shop")
            )

            refused = [answer for answer in done if isinstance(answer, Exception)]
            first = Event.objects.filter(entity_id=row.entity_id, actor__gt="").earliest("recorded_at", "pk")
            assert [(type(error), error.actor) for error in refused] in ([], [(AlreadyDecided, "shop")])
            assert first.actor == ("shop" if refused else "ada")
