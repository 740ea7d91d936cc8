"""Senders that are killed, or stopped for a while, as processes: what they had in hand is sent by another one, in order."""

from __future__ import annotations

import signal
import threading
from collections import defaultdict

import pytest
from django.utils import timezone

from tests.processes import DEADLINE, kill, start_process, wait_for
from tests.testapp.models import Order
from tests.webhooks.receiving import Told
from timeline.clocks import MachineTime
from timeline.shortcuts import emit
from timeline.testing import only_timelines
from timeline.webhooks.models import Attempt, Delivery, SenderSign, State
from timeline.webhooks.opening import open_endpoint

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only_postgresql, pytest.mark.processes]


@pytest.fixture
def told(receiver):
    """Two orders of which an endpoint is told two things each, and how another one is told of."""

    def tell():
        order = Order.objects.create()
        for event in ("told.begun", "told.asked", "told.answered"):
            emit(event, order)
        return str(order.pk)

    with only_timelines(Told):
        open_endpoint(url=f"{receiver.url}/", topics=["told"], now=timezone.now(), using="default")
        tell(), tell()
        yield tell


@pytest.fixture
def start(tmp_path):
    """Start senders: ``start("one")``, or one that dies: ``start("one", dies="claimed")``."""
    processes = []

    def started(name, dies=""):
        command = ["tests.webhooks.dying", dies] if dies else ["manage", "timeline_webhooks"]
        processes.append(start_process(tmp_path, name, *command))
        return processes[-1]

    yield started
    for process in processes:
        process.send_signal(signal.SIGCONT)
        kill(process)


def by_entity(requests):
    """What was sent of each entity, in order; of what was sent twice, the first time."""
    seen = defaultdict(dict)
    for request in requests:
        seen[request.data["entity"]["id"]].setdefault(request.id, request.data["seq"])
    return {key: list(sent.values()) for key, sent in seen.items()}


def let_leases_run_out():
    Delivery.objects.exclude(leased_until=None).update(leased_until=MachineTime())


class TestASenderThatIsKilled:
    @pytest.mark.parametrize("place", ["claimed", "answered", "written", "committed"])
    def test_keeps_nobody_else_waiting_and_what_it_had_is_sent_again_in_order(self, place, told, start, receiver):
        assert start("killed", dies=place).wait(120) == -signal.SIGKILL
        in_hand = set(Delivery.objects.exclude(leased_until=None).values_list("pk", flat=True))

        start("other")
        other = told()
        wait_for(lambda: other in by_entity(receiver.requests), "a delivery about another entity")
        assert set(Delivery.objects.filter(pk__in=in_hand, attempts=0).values_list("pk", flat=True)) == in_hand

        let_leases_run_out()
        wait_for(lambda: not Delivery.objects.waiting().exists(), "all deliveries")
        assert by_entity(receiver.requests) == {str(order.pk): [1, 2] for order in Order.objects.all()}
        assert set(Delivery.objects.values_list("state", "attempts")) == {(State.DELIVERED, 1)}
        assert Attempt.objects.count() == 6
        if place != "committed":  # Then some others had arrived by then, or not.
            assert (len(receiver.requests) > 6) == (place != "claimed")


class TestASenderThatIsStoppedForLongerThanItsLease:
    def test_writes_nothing_of_what_another_one_has_sent(self, told, start, receiver):
        asked, go_on = threading.Event(), threading.Event()

        def answer(_request):
            asked.set()
            go_on.wait(120)
            return 500

        receiver.answer = answer
        late = start("late")
        assert asked.wait(120)
        late.send_signal(signal.SIGSTOP)
        go_on.set()
        receiver.answer = lambda _request: 204
        let_leases_run_out()
        other = start("other")
        wait_for(lambda: not Delivery.objects.waiting().exists(), "all deliveries")
        other.send_signal(signal.SIGTERM)
        other.wait(DEADLINE)

        late.send_signal(signal.SIGCONT)
        more = told()
        wait_for(lambda: Delivery.objects.filter(entity_id=more, state=State.DELIVERED).count() == 2, "more")

        assert set(Delivery.objects.values_list("state", "attempts", "status")) == {(State.DELIVERED, 1, 204)}
        assert set(Attempt.objects.values_list("number", "status")) == {(1, 204)}
        assert Attempt.objects.count() == 6
        assert by_entity(receiver.requests)[more] == [1, 2]
        assert SenderSign.objects.count() == 1
