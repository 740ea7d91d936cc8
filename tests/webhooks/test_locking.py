"""Whoever meets whom, in whichever order: nobody waits for somebody who waits for them, and nothing is half-done."""

from __future__ import annotations

import threading
from contextlib import suppress
from datetime import timedelta
from functools import partial
from uuid import uuid4

import pytest
from django.db import connections, transaction

from tests.asking import WHOLE
from tests.webhooks.meeting import meetings
from timeline.clocks import MachineTime
from timeline.exceptions import InvalidInput
from timeline.features.maintenance.erase import Erased
from timeline.ids import uuid7
from timeline.models import EntityRef
from timeline.webhooks.delivery_rows import claim
from timeline.webhooks.disabling import delete_endpoints, disable, enable, lock_endpoints, replay
from timeline.webhooks.facts import Fact, write_deliveries
from timeline.webhooks.models import Attempt, Delivery, Disabled, Endpoint, State
from timeline.webhooks.opening import open_endpoint
from timeline.webhooks.post import PostOutcome
from timeline.webhooks.receivers import on_erased, on_relabelled
from timeline.webhooks.send import Done, WebhookSender
from timeline.webhooks.upkeep import prune_deliveries

pytestmark = [pytest.mark.only_postgresql, pytest.mark.django_db(transaction=True)]

USING = "default"
TOPIC = "task.completed"


class Site:
    """
    Two endpoints, one of them paused, with deliveries of three entities each: two that arrived, one that is late, two that
    wait, and two that are under way.
    """

    def __init__(self, clock) -> None:
        Endpoint.objects.all().delete()
        self.now = clock.now
        for name in ("first", "second"):
            open_endpoint(
                url=f"https://{name}.example.com/", topics=[TOPIC], description=name, now=self.now, using=USING
            )
        self.keys = list(Endpoint.objects.order_by("pk").values_list("pk", flat=True))
        Endpoint.objects.filter(pk=self.keys[0]).update(failures=5, failing_since=self.now, probe_at=self.now)
        write_deliveries([fact(str(number % 3)) for number in range(7)], now=self.now, using=USING)
        self.token = uuid4()
        for key in self.keys:
            rows = list(Delivery.objects.filter(endpoint=key).order_by("pk"))
            arrived, late, under_way = rows[:2], rows[2:3], rows[5:]
            self._set(arrived, state=State.DELIVERED, ended_at=self.now - timedelta(days=30))
            self._set(late, give_up_at=self.now - timedelta(days=1))
            self._set(under_way, token=self.token, leased_until=MachineTime(timedelta(minutes=1)))
            Attempt.objects.bulk_create(
                Attempt(delivery=row, number=1, at=self.now, duration_ms=1, status=204, answer="yes") for row in arrived
            )

    def _set(self, rows, **columns) -> None:
        Delivery.objects.filter(pk__in=[row.pk for row in rows]).update(**columns)

    def claim(self):
        claim(lambda _endpoint: 10, now=self.now, using=USING)

    def arrive(self):
        self._write(204)

    def be_gone(self):
        self._write(410)

    def _write(self, status):
        sender = WebhookSender(USING)
        deliveries = list(Delivery.objects.filter(token=self.token).select_related("endpoint").order_by("-pk"))
        sender._held_up = {(one.endpoint_id, f"shop.order:{number}") for one in deliveries for number in range(3)}
        answer = PostOutcome(status, "", "" if status == 204 else "no", self.now, 1)
        sender._write([Done(delivery, answer) for delivery in deliveries[1:]] + [Done(deliveries[0], None)])

    def expire(self):
        WebhookSender(USING)._expire(self.now)

    def prune(self):
        prune_deliveries(ended_before=self.now, using=USING)

    def replay(self):
        for endpoint in Endpoint.objects.filter(disabled_at=None).order_by("pk"):
            with suppress(Endpoint.DoesNotExist, InvalidInput):  # It was deleted or disabled meanwhile.
                replay(endpoint, now=self.now, using=USING)

    def disable(self):
        self._each(partial(disable, code=Disabled.OPERATOR))

    def enable(self):
        self._each(enable)

    def _each(self, act):
        with transaction.atomic():
            for endpoint in lock_endpoints(self.keys, using=USING).values():
                act(endpoint, now=self.now, using=USING)

    def delete(self):
        delete_endpoints(self.keys[:1], using=USING)

    def erase(self):
        with transaction.atomic():
            on_erased(entity_ref=EntityRef("shop.order", "0"), done=Erased(), using=USING)

    def relabel(self):
        with transaction.atomic():
            on_relabelled(old="shop.order", new="shop.sale", using=USING)

    def move(self):
        with transaction.atomic():
            write_deliveries([fact("0")], now=self.now, using=USING)


def fact(entity):
    return Fact(uuid7(), [TOPIC], "shop.order", entity, '{"type":"task.completed"}')


STOPPED = ("claim", "arrive", "be_gone", "prune", "replay", "disable", "delete", "erase", "relabel", "move")
BESIDE = (*STOPPED, "expire", "enable")  # Each of these two takes its locks in one statement.


def beside(first):
    """
    What meets this one. If two wait for each other, they do so whichever is stopped: of two, one is stopped here, and the other
    as well where everything is asked.
    """
    at = STOPPED.index(first)
    halves = [second for number, second in enumerate(STOPPED) if (number >= at) == ((number + at) % 2 == 0)]
    return BESIDE if WHOLE else (*halves, *BESIDE[len(STOPPED) :])


def make(first, second, clock):
    site = Site(clock)
    return getattr(site, first), getattr(site, second)


def is_sound():
    """Nobody holds what has ended, and no line of the log is of a delivery that is gone."""
    ended = Delivery.objects.exclude(state=State.WAITING)
    assert not ended.exclude(token=None).exists()
    assert not Attempt.objects.exclude(delivery__in=Delivery.objects.all()).exists()


class TestTwo:
    @pytest.mark.parametrize("first", STOPPED)
    def test_acts_never_wait_for_each_other(self, first, clock):
        """
        After each statement of the one, the other does all that it can: both end, and neither fails. After every second one,
        unless everything is asked.
        """
        for second in beside(first):
            for at, errors in meetings(partial(make, first, second, clock), every=1 if WHOLE else 2):
                assert errors == [], f"{first}, stopped after statement {at}, and {second}"
                is_sound()


class TestTwoSendersThatClaim:
    def test_keep_the_order_where_one_has_only_begun_to(self, clock):
        """One has locked the first delivery of an entity, and not yet the second: the other leaves the second alone."""
        site = Site(clock)
        endpoint = site.keys[1]
        Delivery.objects.filter(endpoint=endpoint).delete()
        write_deliveries([fact("same"), fact("same"), fact("other")], now=site.now, using=USING)
        rows = Delivery.objects.filter(endpoint=endpoint, state=State.WAITING).order_by("pk")
        first, _second, other = rows.values_list("pk", flat=True)
        begun, go = threading.Event(), threading.Event()

        def begin():
            try:
                with transaction.atomic():
                    list(rows.filter(pk=first).locked())
                    begun.set()
                    go.wait(120)
            finally:
                connections.close_all()

        thread = threading.Thread(target=begin)
        thread.start()
        begun.wait(120)
        try:
            claimed = claim(lambda one: 9 if one.pk == endpoint else 0, now=site.now, using=USING)
        finally:
            go.set()
            thread.join(120)

        assert [delivery.pk for delivery in claimed.deliveries] == [other]
