"""Endpoints and deliveries of webhooks in the API."""

from __future__ import annotations

import json
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.postgresql.plans import plans_made_by
from tests.webhooks.receiving import Receiver
from timeline.ids import uuid7
from timeline.models.upkeep import Answer
from timeline.webhooks.models import Attempt, Delivery, Endpoint, State
from timeline.webhooks.opening import open_endpoint
from timeline.webhooks.secrets import decrypted

HOOKS = ("view_endpoint", "add_endpoint", "change_endpoint", "delete_endpoint", "view_delivery")
LIST, ONE, LOG = "/webhooks/endpoints/", "/webhooks/endpoints/{id}/", "/webhooks/deliveries/"
SEEING = {"view_endpoint", "change_endpoint"}
# Operation → with which permissions there is anything, which of them it needs beside, and what it answers.
RULES = {
    ("GET", LIST): (None, None, 200),
    ("POST", LIST): (None, "add_endpoint", 201),
    ("GET", ONE): (SEEING, None, 200),
    ("PATCH", ONE): (SEEING, "change_endpoint", 200),
    ("DELETE", ONE): (SEEING, "delete_endpoint", 204),
    ("POST", ONE + "disable/"): (SEEING, "change_endpoint", 200),
    ("POST", ONE + "enable/"): (SEEING, "change_endpoint", 200),
    ("POST", ONE + "rotate/"): (SEEING, "change_endpoint", 200),
    ("POST", ONE + "test/"): (SEEING, "change_endpoint", 200),
    ("POST", ONE + "replay/"): (SEEING, "change_endpoint", 200),
    ("GET", LOG): (None, None, 200),
    ("GET", LOG + "{id}/"): ({"view_delivery"}, None, 200),
}
ROLES = {
    "anonymous": None,
    "person": (),
    "staff": ("view_scheduledtask",),
    **{name: (name,) for name in HOOKS},
    "who views and deletes": ("view_endpoint", "delete_endpoint"),
}


@pytest.fixture
def made(db, clock):
    """An endpoint to which nothing is sent, with three deliveries: one waits, one arrived, one was given up."""
    endpoint, secret = open_endpoint(
        url="https://books.example.com/hook", topics=["task.completed"], now=clock.now, using="default"
    )
    endpoint.shown = secret
    for number, state in enumerate((State.WAITING, State.DELIVERED, State.FAILED)):
        at = clock.now + timedelta(minutes=number)
        delivery = Delivery.objects.create(
            endpoint=endpoint,
            source=uuid7(),
            topic="task.completed",
            body='{"secret": "word"}',
            state=state,
            entity_label="accounts.user",
            entity_id="1",
            created_at=at,
            due_at=at,
            give_up_at=at,
            ended_at=None if state == State.WAITING else at,
        )
        Attempt.objects.create(delivery=delivery, number=1, at=at, duration_ms=3, status=500, answer="oh")
    clock.advance(minutes=10)
    return endpoint


@pytest.fixture
def operator(person, asked_by):
    """Ask as somebody who may do everything with webhooks."""
    return asked_by(person("hooker", *HOOKS))


def fingerprint():
    return [list(model.objects.order_by("pk").values()) for model in (Endpoint, Delivery, Attempt)]


def send(asker, method, path, body=None, **headers):
    data = "" if body is None else json.dumps(body)
    return asker.client.generic(method, f"/api/v1{path}", data, content_type="application/json", headers=headers)


def body_of(method, path):
    if (method, path) == ("POST", LIST):
        return {"url": "https://other.example.com/", "topics": ["task.discarded"]}
    known = {
        "PATCH": {"description": "changed"},
        "disable/": {"reason": "x"},
        "replay/": {"since": "2020-01-01T00:00:00Z"},
    }
    return next((body for name, body in known.items() if method == name or path.endswith(name)), None)


class TestMatrix:
    @pytest.mark.parametrize("role", ROLES)
    @pytest.mark.parametrize(("method", "path"), RULES)
    def test_is_kept(self, method, path, role, made, person, asked_by):
        permissions = set(ROLES[role] or ())
        sees, needs, status = RULES[method, path]
        if path.endswith("/test/"):
            Endpoint.objects.update(url="https://10.0.0.1/")  # A sample is refused before it is sent.
        key = made.deliveries.first().pk if path.startswith(LOG) else made.pk
        asker = asked_by(None if role == "anonymous" else person("asker", *permissions, is_staff=role != "person"))
        before = fingerprint()

        answer = send(asker, method, path.replace("{id}", str(key)), body_of(method, path))

        expected = 403 if role == "anonymous" else 404 if sees and not sees & permissions else status
        expected = 403 if expected < 400 and needs and needs not in permissions else expected
        assert answer.status_code == expected, answer.content
        if expected >= 400 or method == "GET":
            assert fingerprint() == before
        if method == "GET" and path == LIST:
            assert bool(answer.json().get("results")) == bool(SEEING & permissions)
        if method == "GET" and path == LOG:
            assert bool(answer.json().get("results")) == ("view_delivery" in permissions)

    def test_of_who_is_not_staff_has_nothing_in_it(self, made, person, asked_by):
        asker = asked_by(person("guest", *HOOKS, is_staff=False))

        assert send(asker, "GET", ONE.replace("{id}", str(made.pk))).status_code == 404


class TestASecret:
    def test_is_shown_when_it_is_made_and_never_again(self, operator, clock):
        asked = {"url": "https://books.example.com/hook", "topics": ["task.completed"], "description": "Books"}

        first, again = (send(operator, "POST", LIST, asked, **{"Idempotency-Key": "k"}) for _ in range(2))

        [endpoint] = Endpoint.objects.all()
        assert (first.status_code, first.json()["secret"]) == (201, decrypted(endpoint.secret))
        assert again.json() == first.json() | {"secret": None}
        assert "whsec_" not in Answer.objects.get().body
        for path in (LIST, ONE.replace("{id}", str(endpoint.pk))):
            said = send(operator, "GET", path).content.decode()
            assert "whsec_" not in said
            assert endpoint.secret not in said

    def test_is_rotated_once_for_each_key(self, operator, made):
        path = ONE.replace("{id}", str(made.pk)) + "rotate/"

        first, again = (send(operator, "POST", path, **{"Idempotency-Key": "k"}) for _ in range(2))

        after = Endpoint.objects.get()
        assert first.json()["secret"] == decrypted(after.secret) != made.shown == decrypted(after.previous_secret)
        assert again.json()["secret"] is None


class TestAURL:
    @pytest.mark.parametrize("role", ["view_endpoint", "view_delivery", "add_endpoint", "delete_endpoint"])
    def test_is_shown_whole_to_who_may_change_it_and_to_nobody_else(self, role, made, person, asked_by):
        """It may have a secret in it."""
        Endpoint.objects.update(url="https://books.example.com/s3cret?key=s3cret")
        viewer, changer = asked_by(person("viewer", "view_endpoint", role)), asked_by(person("c", "change_endpoint"))
        paths = [LIST, ONE.replace("{id}", str(made.pk)), LOG]
        paths += [f"{LOG}{key}/" for key in made.deliveries.values_list("pk", flat=True)]

        said = "".join(send(viewer, "GET", path).content.decode() for path in paths)

        assert "s3cret" not in said
        assert "books.example.com/…" in said
        assert send(changer, "GET", paths[1]).json()["url"] == "https://books.example.com/s3cret?key=s3cret"

    def test_is_no_part_of_what_who_may_not_change_it_sees_change(self, made, person, asked_by):
        """Else their tag of it would tell, and would be refused by the next request of theirs."""
        asker = asked_by(person("viewer", "view_endpoint", "delete_endpoint"))
        path = ONE.replace("{id}", str(made.pk))
        seen = send(asker, "GET", path)["ETag"]
        Endpoint.objects.update(url="https://books.example.com/other")

        assert send(asker, "GET", path)["ETag"] == seen
        assert send(asker, "DELETE", path, **{"If-Match": seen}).status_code == 204


class TestAnEndpoint:
    @pytest.mark.parametrize(
        ("wrong", "field"),
        [
            ({"url": "https://10.0.0.1/"}, "url"),
            ({"url": "http://books.example.com/"}, "url"),
            ({"url": "https://me:word@books.example.com/"}, "url"),
            ({"url": "https://metadata.google.internal/"}, "url"),
            ({"topics": ["task.complete"]}, "topics"),
            ({"topics": []}, "topics"),
            ({"ordered": "some"}, "ordered"),
            ({"secret": "whsec_mine"}, "secret"),
        ],
    )
    def test_is_refused_by_field_when_made_and_when_changed(self, operator, made, wrong, field):
        before = fingerprint()
        whole = {"url": "https://books.example.com/", "topics": ["task.completed"]} | wrong

        answers = [
            send(operator, "POST", LIST, whole),
            send(operator, "PATCH", ONE.replace("{id}", str(made.pk)), wrong),
        ]

        assert [(answer.status_code, answer.json()["field"]) for answer in answers] == [(400, field)] * 2
        assert fingerprint() == before

    def test_is_changed_only_as_it_was_seen(self, operator, made):
        path = ONE.replace("{id}", str(made.pk))
        seen = send(operator, "GET", path)["ETag"]

        changed = send(operator, "PATCH", path, {"description": "a"}, **{"If-Match": seen})
        refused = send(operator, "PATCH", path, {"description": "b"}, **{"If-Match": seen})

        assert (changed.status_code, refused.status_code) == (200, 412)
        assert Endpoint.objects.get().description == "a"
        assert send(operator, "GET", path, **{"If-None-Match": send(operator, "GET", path)["ETag"]}).status_code == 304
        assert send(operator, "DELETE", path, **{"If-Match": seen}).status_code == 412

    def test_is_disabled_with_a_reason_enabled_and_deleted(self, operator, made):
        path = ONE.replace("{id}", str(made.pk))

        off = send(operator, "POST", path + "disable/", {"reason": "rebuilt"}).json()
        again = send(operator, "POST", path + "disable/", {"reason": "other"}).json()
        cancelled = Delivery.objects.filter(state=State.CANCELLED).count()
        on = send(operator, "POST", path + "enable/").json()

        assert (off["disabled_code"], off["disabled_reason"], cancelled) == ("operator", "rebuilt", 1)
        assert again == off
        assert (on["disabled_at"], on["disabled_reason"]) == (None, "")
        assert send(operator, "DELETE", path).status_code == 204
        assert fingerprint() == [[], [], []]

    def test_that_may_not_be_called_any_more_can_be_described_otherwise(self, operator, made):
        Endpoint.objects.update(url="https://10.0.0.1/")

        answer = send(operator, "PATCH", ONE.replace("{id}", str(made.pk)), {"description": "moves soon"})

        assert (answer.status_code, Endpoint.objects.get().description) == (200, "moves soon")

    def test_that_is_not_there_is_a_404(self, operator, made):
        assert send(operator, "POST", ONE.replace("{id}", str(uuid4())) + "rotate/").status_code == 404

    def test_is_sent_a_signed_sample(self, operator, made, settings):
        settings.TIMELINE_WEBHOOKS = settings.TIMELINE_WEBHOOKS | {"ALLOW_LOOPBACK": True}
        before = Delivery.objects.count()
        with Receiver() as receiver:
            Endpoint.objects.update(url=receiver.url)

            answer = send(operator, "POST", ONE.replace("{id}", str(made.pk)) + "test/")

            assert (answer.json()["status"], answer.json()["error"]) == (204, "")
            assert len(receiver.requests) == 1
        assert Delivery.objects.count() == before


class TestReplaying:
    def test_counts_and_then_sends_what_did_not_arrive(self, operator, made):
        path, asked = ONE.replace("{id}", str(made.pk)) + "replay/", {"since": "2020-01-01T00:00:00Z"}
        before = fingerprint()

        counted = send(operator, "POST", path, asked | {"dry_run": True}).json()
        unchanged = fingerprint() == before
        sent = send(operator, "POST", path, asked).json()

        assert (counted, unchanged) == ({"count": 1, "dry_run": True}, True)
        assert sent == {"count": 1, "dry_run": False}
        assert Delivery.objects.filter(state=State.WAITING).count() == 2
        assert send(operator, "POST", path, asked | {"arrived": True}).json()["count"] == 1

    @pytest.mark.parametrize(
        ("asked", "field"),
        [
            ({}, "since"),
            ({"since": "2026-01-01"}, "since"),
            ({"since": "0001-01-01T00:00:00Z"}, "since"),
            ({"since": "2026-01-02T00:00:00Z", "until": "2026-01-01T00:00:00Z"}, "until"),
            ({"since": "2026-01-02T00:00:00Z", "dry_run": "yes"}, "dry_run"),
        ],
    )
    def test_refuses_what_is_no_time(self, operator, made, asked, field):
        answer = send(operator, "POST", ONE.replace("{id}", str(made.pk)) + "replay/", asked)

        assert (answer.status_code, answer.json()["field"]) == (400, field)

    def test_of_one_that_is_disabled_is_counted_and_refused(self, operator, made, clock):
        Endpoint.objects.update(disabled_at=clock.now)
        before = fingerprint()
        path, asked = ONE.replace("{id}", str(made.pk)) + "replay/", {"since": "2020-01-01T00:00:00Z"}

        counted = send(operator, "POST", path, asked | {"dry_run": True})
        refused = send(operator, "POST", path, asked)

        assert (counted.json()["count"], refused.status_code) == (1, 409)
        assert fingerprint() == before


class TestTheLog:
    def test_is_listed_by_endpoint_state_and_time_in_pages(self, operator, made):
        rows = list(made.deliveries.order_by("-pk"))

        def ids(**query):
            return [row["id"] for row in operator.get("webhooks/deliveries/", **query).json()["results"]]

        assert ids() == [row.pk for row in rows]
        assert ids(endpoint=made.pk, state="waiting") == [rows[-1].pk]
        assert ids(endpoint=uuid4()) == []
        assert ids(since=rows[0].created_at.isoformat()) == [rows[0].pk]
        assert ids(until=rows[1].created_at.isoformat()) == [rows[2].pk]
        first = operator.get("webhooks/deliveries/", limit=2).json()
        rest = operator.client.get(first["next"]).json()
        assert [row["id"] for row in first["results"] + rest["results"]] == [row.pk for row in rows]

    @pytest.mark.parametrize(
        "query",
        [{"state": "x"}, {"endpoint": "x"}, {"since": "x"}, {"cursor": "x"}, {"cursor": "9" * 19}, {"what": "x"}],
    )
    def test_refuses_queries_that_mean_nothing(self, operator, query):
        assert operator.get("webhooks/deliveries/", **query).status_code == 400

    def test_of_one_has_its_tries(self, operator, made):
        row = made.deliveries.first()

        said = operator.get(f"webhooks/deliveries/{row.pk}/").json()

        assert (said["message_id"], said["body"]) == (row.message_id, row.body)
        assert [(one["status"], one["answer"]) for one in said["tries"]] == [(500, "oh")]
        assert said["entity"] == {"label": "accounts.user", "id": "1"}
        assert operator.get(f"webhooks/deliveries/{10**30}/").status_code == 404

    def test_is_read_with_as_many_queries_whatever_its_length(self, operator, made):
        def queries(limit):
            with CaptureQueriesContext(connection) as found:
                operator.get("webhooks/deliveries/", limit=limit)
            return len(found)

        assert queries(1) == queries(3)


@pytest.mark.parametrize("state", [State.FAILED, State.CANCELLED])
@pytest.mark.parametrize("asked", ["", "&endpoint={endpoint}"])
def test_what_did_not_arrive_is_found_among_very_many_without_reading_these(operator, made, state, asked):
    with connection.cursor() as cursor:
        names = [field.column for field in Delivery._meta.concrete_fields if field.column != "id"]
        values = ", ".join("gen_random_uuid()" if name == "source" else name for name in names)
        rows = f"SELECT {values} FROM timeline_webhooks_delivery, generate_series(1, 20000)"  # noqa: S608 (columns)
        cursor.execute(f"INSERT INTO timeline_webhooks_delivery ({', '.join(names)}) {rows} WHERE state = 'delivered'")
        cursor.execute("ANALYZE timeline_webhooks_delivery")
    address = f"{LOG[1:]}?state={state}{asked.format(endpoint=made.pk)}"

    [plan] = plans_made_by(lambda: operator.get(address), about="timeline_webhooks_delivery")

    assert "Index Scan Backward using timeline_webhooks_missed" in plan
