"""Deliveries: written with the move, sent in order, tried again."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from cryptography.fernet import Fernet
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from standardwebhooks import WebhookVerificationError

from tests.testapp.models import Order
from tests.webhooks.receiving import Told
from timeline.ids import uuid7
from timeline.models import ScheduledTask
from timeline.shortcuts import emit, emit_many
from timeline.testing import only_timelines
from timeline.timelines import Alerts
from timeline.webhooks.delivery_rows import Outcome, claim, record
from timeline.webhooks.disabling import disable, enable, lock_endpoints, replay, rotate
from timeline.webhooks.models import Attempt, Delivery, Disabled, State
from timeline.webhooks.post import PostOutcome
from timeline.webhooks.receivers import assume_none, is_any
from timeline.webhooks.send import WebhookSender


def deliver():
    return WebhookSender("default").drain()


def told_order(*events):
    order = Order.objects.create()
    for event in ("told.begun", *events):
        emit(event, order)
    return order


class TestAMove:
    def test_is_told_signed_and_logged(self, endpoint_for, receiver):
        endpoint = endpoint_for("told")

        order = told_order("told.asked", "told.answered")
        tried = deliver()

        assert tried == 2
        [asked, done] = receiver.requests
        assert asked.verified_by(endpoint.shown)["type"] == "told.told.asked"
        body = done.verified_by(endpoint.shown)
        assert body["type"] == "told.done"
        assert body["data"]["entity"] == {"type": "testapp.order", "id": str(order.pk)}
        assert (body["data"]["from"], body["data"]["state"], body["data"]["seq"]) == ("asked", "done", 2)
        assert {delivery.state for delivery in Delivery.objects.all()} == {State.DELIVERED}
        assert [(each.number, each.status) for each in Attempt.objects.all()] == [(1, 204), (1, 204)]

    def test_is_told_by_each_way_it_comes_about(self, endpoint_for, receiver, clock):
        """By emit, by a timer's Then; not what its table ignores, and not what it does not tell."""
        endpoint_for("told")
        told_order("told.seen", "told.quiet")

        deliver()
        assert receiver.requests == []

        clock.advance(hours=2)
        deliver()
        assert [request.data["event"] for request in receiver.requests] == ["told.asked"]

    def test_is_not_told_before_its_commit_nor_if_it_is_undone(self, endpoint_for, receiver):
        endpoint_for("told")

        with transaction.atomic():
            told_order("told.asked")
            assert Delivery.objects.exists()
            transaction.set_rollback(True)

        assert not Delivery.objects.exists()

    def test_is_told_to_those_who_want_it(self, endpoint_for, receiver):
        for topic in ("told", "told.done", "told.dropped", "told.told.asked", "task.completed"):
            endpoint_for(topic, path=f"/{topic}")

        told_order("told.asked", "told.answered")
        deliver()

        assert sorted((request.path, request.data["state"]) for request in receiver.requests) == [
            ("/told", "asked"),
            ("/told", "done"),
            ("/told.done", "done"),
            ("/told.told.asked", "asked"),
        ]


class TestWhatFailed:
    def test_is_tried_again_with_the_same_id_and_body(self, endpoint_for, receiver, clock):
        endpoint_for("told")
        receiver.answer = lambda _request: 500
        told_order("told.asked")

        deliver()
        assert deliver() == 0
        receiver.answer = lambda _request: 200
        clock.advance(seconds=6)
        deliver()

        [first, second] = receiver.requests
        assert (first.id, first.body) == (second.id, second.body)
        [delivery] = Delivery.objects.all()
        assert (delivery.state, delivery.attempts, delivery.status) == (State.DELIVERED, 2, 200)
        assert [each.error for each in Attempt.objects.order_by("id")] == ["It answered 500.", ""]

    def test_holds_up_what_is_about_the_same_entity_and_nothing_else(self, endpoint_for, receiver, clock):
        endpoint_for("told")
        order = told_order("told.asked", "told.answered")
        receiver.answer = lambda request: 500 if request.data["entity"]["id"] == str(order.pk) else 204

        other = told_order("told.asked", "told.answered")
        deliver()

        sent = [(request.data["entity"]["id"], request.data["seq"]) for request in receiver.requests]
        assert sorted(sent) == [(str(order.pk), 1), (str(other.pk), 1), (str(other.pk), 2)]
        receiver.reset()
        clock.advance(seconds=10)
        deliver()
        assert [request.data["seq"] for request in receiver.requests] == [1, 2]

    def test_is_given_up_after_three_days_and_can_be_sent_again(self, endpoint_for, receiver, clock):
        endpoint = endpoint_for("told")
        receiver.answer = lambda _request: 503
        told_order("told.asked")
        for _part in range(19):
            deliver()
            clock.advance(hours=4)

        [delivery] = Delivery.objects.all()
        assert (delivery.state, delivery.code) == (State.FAILED, "late")
        assert 8 < delivery.attempts < 20
        receiver.reset()
        assert replay(endpoint, now=clock.now, using="default") == 1
        deliver()
        delivery.refresh_from_db()
        assert delivery.state == State.DELIVERED
        assert [request.id for request in receiver.requests] == [delivery.message_id]


class TestWhatNobodySent:
    """No sender ran for longer than a delivery is tried: each is tried once at least, in its order."""

    def test_is_sent_when_one_runs_again(self, endpoint_for, receiver, clock):
        endpoint_for("told")
        told_order("told.asked", "told.answered")

        clock.advance(days=4)
        deliver()

        assert [request.data["seq"] for request in receiver.requests] == [1, 2]
        assert {delivery.state for delivery in Delivery.objects.all()} == {State.DELIVERED}

    def test_is_given_up_if_that_one_time_fails_and_what_is_behind_it_has_its_own(self, endpoint_for, receiver, clock):
        endpoint_for("told")
        told_order("told.asked", "told.answered")
        receiver.answer = lambda request: 500 if request.data["seq"] == 1 else 204

        clock.advance(days=4)
        deliver()
        clock.advance(minutes=10)
        deliver()

        ends = Delivery.objects.order_by("pk").values_list("state", "code", "attempts")
        assert list(ends) == [(State.FAILED, "late", 1), (State.DELIVERED, "", 1)]


class TestALateOutcome:
    def test_is_left_and_moves_nothing_behind_it(self, endpoint_for, receiver, clock):
        """Another one has claimed it meanwhile, by the token; nor does it count as a failure of the endpoint."""
        endpoint = endpoint_for("told")
        told_order("told.asked", "told.answered")
        late = claim(lambda _endpoint: 1, now=clock.now, using="default")
        Delivery.objects.filter(pk=late.deliveries[0].pk).update(token=uuid7())
        before = list(Delivery.objects.order_by("pk").values())
        late.deliveries[0].token = late.token

        with transaction.atomic():
            endpoints = lock_endpoints([endpoint.pk], using="default")
            failed = Outcome(late.deliveries[0], PostOutcome(500, "", "It answered 500.", clock.now, 1))
            assert record([failed], endpoints, now=clock.now, using="default") == 0

        assert list(Delivery.objects.order_by("pk").values()) == before
        assert not Attempt.objects.exists()
        endpoint.refresh_from_db()
        assert endpoint.failures == 0


class TestAnEndpointThatFails:
    def test_is_paused_and_the_first_that_arrives_lets_all_others_go(self, endpoint_for, receiver, clock):
        endpoint = endpoint_for("told")
        receiver.answer = lambda _request: 500
        for _order in range(8):
            told_order("told.asked")
        for _minute in range(4):
            deliver()
            clock.advance(minutes=10)
        endpoint.refresh_from_db()
        assert endpoint.is_paused
        receiver.reset()

        clock.advance(minutes=10)
        deliver()

        endpoint.refresh_from_db()
        assert (endpoint.failures, endpoint.failing_since) == (0, None)
        assert len(receiver.requests) == 8

    def test_is_disabled_at_once_by_410_and_people_are_told(self, endpoint_for, receiver, clock, settings):
        settings.TIMELINE = {"ALERTS": ["ops@example.com"]}
        endpoint = endpoint_for("told", description="Books")
        receiver.answer = lambda _request: 410
        with only_timelines(Told, Alerts):
            told_order("told.asked")
            told_order("told.asked")
            deliver()

        endpoint.refresh_from_db()
        assert (endpoint.is_enabled, endpoint.disabled_code) == (False, "gone")
        states = set(Delivery.objects.values_list("state", "code"))
        assert ("cancelled", "endpoint") in states
        assert not Delivery.objects.waiting().exists()
        [alert] = ScheduledTask.objects.filter(task_key="alerts.tell")
        assert (alert.payload["kind"], alert.payload["about"]) == ("disabled", "Books")

    def test_is_disabled_after_five_days(self, endpoint_for, receiver, clock):
        endpoint = endpoint_for("told")
        receiver.answer = lambda _request: 500
        for _part in range(24):
            told_order("told.asked")
            deliver()
            clock.advance(hours=5)
        endpoint.refresh_from_db()
        assert endpoint.is_enabled
        assert endpoint.failures >= 20

        told_order("told.asked")
        deliver()

        endpoint.refresh_from_db()
        assert (endpoint.is_enabled, endpoint.disabled_code) == (False, "failing")


class TestAReceiverThatAsksToWait:
    """With 429 or 503 and ``Retry-After``: it is well, and has too much to do."""

    @pytest.mark.parametrize("status", [429, 503])
    def test_is_left_alone_for_as_long_and_has_not_failed(self, status, endpoint_for, receiver, clock):
        """For all that waits, what is written meanwhile too."""
        endpoint = endpoint_for("told")
        receiver.answer = lambda _request: (status, b"", ("Retry-After", "7200"))
        for _time in range(7):
            told_order("told.asked")
            deliver()
        endpoint.refresh_from_db()
        assert (endpoint.failures, endpoint.failing_since, endpoint.is_paused) == (0, None, False)
        assert len(receiver.requests) == 1
        receiver.reset()

        clock.advance(minutes=119)
        deliver()
        assert receiver.requests == []
        clock.advance(minutes=2)
        deliver()

        assert len(receiver.requests) == 7
        assert not Delivery.objects.waiting().exists()

    def test_is_not_sent_what_was_claimed_with_it(self, endpoint_for, receiver, settings):
        settings.TIMELINE_WEBHOOKS = settings.TIMELINE_WEBHOOKS | {"PER_ENDPOINT": 1}
        endpoint_for("told")
        receiver.answer = lambda _request: (429, b"", ("Retry-After", "60"))
        for _order in range(8):
            told_order("told.asked")

        deliver()

        assert len(receiver.requests) == 1
        assert set(Delivery.objects.values_list("attempts", "leased_until")) == {(1, None), (0, None)}

    def test_waits_no_shorter_than_without_it(self, endpoint_for, receiver, clock):
        """A delivery that has failed five times is not tried each second because of a careless answer."""
        endpoint_for("told")
        told_order("told.asked")
        Delivery.objects.update(attempts=5)
        receiver.answer = lambda _request: (503, b"", ("Retry-After", "1"))

        deliver()

        assert Delivery.objects.get().due_at - clock.now > timedelta(minutes=30)

    @pytest.mark.parametrize(("status", "said"), [(503, "soon"), (503, "0"), (500, "7200"), (200, "7200")])
    def test_does_not_if_it_says_nothing_of_the_kind(self, status, said, endpoint_for, receiver, clock):
        endpoint = endpoint_for("told")
        receiver.answer = lambda _request: (status, b"", ("Retry-After", said))
        told_order("told.asked")
        deliver()

        endpoint.refresh_from_db()
        assert (endpoint.failures, endpoint.quiet_until) == (int(status >= 300), None)

    def test_is_sent_to_at_once_when_a_person_enables_it(self, endpoint_for, receiver, clock):
        endpoint = endpoint_for("told")
        receiver.answer = lambda _request: (429, b"", ("Retry-After", "7200"))
        told_order("told.asked")
        deliver()
        receiver.reset()
        endpoint.refresh_from_db()

        disable(endpoint, Disabled.OPERATOR, now=clock.now, using="default")
        enable(endpoint, now=clock.now, using="default")
        told_order("told.asked")
        deliver()

        assert len(receiver.requests) == 1


class TestARotatedSecret:
    def test_signs_beside_the_one_before_it_for_a_day(self, endpoint_for, receiver, clock):
        endpoint = endpoint_for("told")
        secret = rotate(endpoint, now=clock.now, using="default")
        told_order("told.asked")
        deliver()
        clock.advance(hours=25)
        told_order("told.asked")
        deliver()

        both, later = receiver.requests
        for known in (secret, endpoint.shown):
            both.verified_by(known)
        assert both.headers["webhook-signature"].count("v1,") == 2
        later.verified_by(secret)
        with pytest.raises(WebhookVerificationError):
            later.verified_by(endpoint.shown)


class TestTasks:
    def test_are_told_when_they_end(self, endpoint_for, receiver, clock):
        endpoint_for("task.completed.told.ask", "task.cancelled", path="/tasks")
        told_order("told.quiet")
        told_order("told.quiet", "told.dropped")
        clock.advance(hours=1)
        deliver()

        said = [(json.loads(request.body)["type"], request.data["reason"]) for request in receiver.requests]
        assert sorted(said) == [("task.cancelled", "exit"), ("task.completed", "done")]


class TestStatements:
    def test_are_as_many_as_without_where_nobody_is_told(self, clock, django_assert_num_queries):
        assume_none("default")
        order = told_order()
        with CaptureQueriesContext(connection) as alone:
            emit("told.asked", order)
        assert not any("webhooks" in query["sql"] for query in alone)

    def test_are_one_for_a_thousand_moves(self, endpoint_for):
        endpoint_for("told")
        orders = Order.objects.bulk_create([Order() for _each in range(50)])
        emit_many("told.begun", orders)
        is_any(using="default")
        with CaptureQueriesContext(connection) as told:
            emit_many("told.asked", orders)
        assert sum("timeline_webhooks" in query["sql"] for query in told) == 1
        assert Delivery.objects.count() == 50


class TestASecretThatNoKeyOpens:
    def test_fails_at_its_endpoint_and_at_no_other(self, endpoint_for, receiver):
        broken = endpoint_for("told", path="/broken")
        endpoint_for("told", path="/fine")
        broken.secret = Fernet(Fernet.generate_key()).encrypt(b"whsec_other").decode()
        broken.save()

        told_order("told.asked")
        deliver()

        assert [request.path for request in receiver.requests] == ["/fine"]
        [failed] = Delivery.objects.filter(endpoint=broken)
        assert failed.state == State.WAITING
        assert failed.error.startswith("No key in TIMELINE_WEBHOOKS['KEYS'] opens the secret.")
