"""Thousands of requests made up from the schema, right and wrong: no fault of the server's, no answer the schema lacks."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import contextmanager
from datetime import timedelta

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from django.test import Client
from hypothesis import HealthCheck, given
from hypothesis import settings as bounded
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.core.parameters import ParameterLocation

from tests.api.conftest import ROOT
from tests.api.test_roles import RULES
from tests.api.test_webhooks import HOOKS
from tests.asking import WHOLE
from tests.conftest import NOW
from tests.features.bulk_actions.bulk import bulk_action  # of bulk_actions
from timeline.api.pagination import Place
from timeline.exceptions import InvalidInput
from timeline.features.bulk_actions.poll import begin_bulk  # of bulk_actions
from timeline.ids import uuid7
from timeline.lifecycle import FINAL, OPEN, WAITING, State
from timeline.models import BulkAction, Event, Hold, ScheduledTask
from timeline.payloads import check_data
from timeline.shortcuts import emit, hold, start
from timeline.webhooks.models import Delivery, Endpoint
from timeline.webhooks.secrets import encrypted, new_secret

CONFIG = {
    "generation": {"allow-x00": False, "with-security-parameters": False},
    # A right tag may be that of another state (412), or of this one (304), a right key that of another request (422).
    "checks": {
        "positive_data_acceptance": {"expected-statuses": ["2xx", "304", "401", "403", "404", "409", "412", "422"]}
    },
}  # What holds a NUL is refused, which a schema cannot say.
TOKEN = "t" * 32
GROUP = "0123456789abcdef"  # Of all that failed.
NAMES = {"timeline": "account", "task": "account.call", "group": GROUP}  # Any others are refused.
LATER = "8999-01-01T00:00:00Z"
CASES = int(os.environ.get("FUZZ_CASES", "800"))  # Of staff; make fuzz has more.
# Otherwise a third of the wrong ones: few of these get beyond the first check.
ALL_WRONG = WHOLE or "FUZZ_CASES" in os.environ
EACH = -(-CASES // (len(RULES) * len(GenerationMode)))  # Of an operation, right ones or wrong ones.


@pytest.fixture
def _rows(ada, person, seat, about, clock):
    """Rows in all states, of two people, and holds."""
    for number in range(20):
        hold(task="account.call", reason=f"hold {number}")
    for _ in range(3):  # of bulk_actions
        begin_bulk(bulk_action("cancel", asker=ada.pk), ScheduledTask.objects.all(), using="default")
    for user in (ada, person("ben")):
        emit("user.created", user)
        start("seating", seat(user))
        for state in State:
            for number in range(20):
                at = clock.now + timedelta(minutes=number)
                about("account.call", user, state=state, scheduled_at=at, fingerprint=GROUP)


@contextmanager
def one_connection():
    """Let requests leave the connection open, whose transaction is the test's. Django's own client does so by itself."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    try:
        yield
    finally:
        for signal in (request_started, request_finished):
            signal.connect(close_old_connections)


@pytest.fixture
def fuzz(ada, _rows, settings):
    """Make up requests of each operation in somebody's name; gives how many were answered with which status."""

    def run(user, examples, *, webhooks=False):
        client = Client()
        client.force_login(user)
        settings.CSRF_USE_SESSIONS = True  # A cookie of its own is none that the schema knows.
        session = client.session
        session["_csrftoken"] = TOKEN
        session.save()
        cookies = {"sessionid": client.cookies["sessionid"].value}
        document = client.get(f"{ROOT}/schema/").json()
        schema = schemathesis.openapi.from_dict(document, config=schemathesis.Config.from_dict(CONFIG))
        schema.app = get_wsgi_application()

        @schema.auth()
        class Session:
            def get(self, case, context):
                return cookies

            def set(self, case, data, context):
                case.cookies = {**(case.cookies or {}), **data}
                case.headers = {**(case.headers or {}), "X-CSRFToken": TOKEN}

        seen = Counter()
        with one_connection():
            for found in schema.get_all_operations():
                if ("/webhooks/" in found.ok().path) is not webhooks:
                    continue
                for mode in GenerationMode:
                    some = examples if ALL_WRONG or mode is GenerationMode.POSITIVE else -(-examples // 3)
                    ask_all(found.ok(), mode, ada, some, seen)
        return seen

    return run


def ask_all(operation, mode, ada, examples, seen):
    """Make up requests of one operation, right ones or wrong ones, and check each answer with all checks."""
    keys = list(ScheduledTask.objects.order_by("pk").values_list("pk", flat=True))

    @bounded(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), pick=st.integers(0, 10_000))
    def ask(case, pick):
        if "/webhooks/" in operation.path:
            make_real_hooks(case, pick)
        else:
            make_real(case, pick, keys, ada)
        answer = case.call_and_validate()
        seen.update([answer.status_code, "all"])
        if answer.status_code < 300:
            seen[operation.label] += 1

    ask()


def make_real(case, pick, keys, ada):
    """Put what is there in the place of what was made up, where any other would be refused for not being there."""
    moment = f"{1970 + pick % 7030}-02-28T23:59:59.5+14:00"
    entity = {"label": "accounts.user", "id": str(ada.pk)}
    real = {**entity, "group": GROUP, **id_for(case, pick, keys)}
    if pick % 5 and not case.meta.is_negative_at(ParameterLocation.PATH):
        case.path_parameters = {name: real[name] for name in case.path_parameters or {}}
    if "cursor" in (case.query or {}) and not case.meta.is_negative_at(ParameterLocation.QUERY):
        case.query["cursor"] = str(Place(NOW, keys[pick % len(keys)]))
        case.query |= {} if case.operation.label.endswith("v1/tasks/") else {"part": ("past", "upcoming")[pick % 2]}
    if isinstance(case.query, dict) and not case.meta.is_negative_at(ParameterLocation.QUERY):
        case.query |= {name: NAMES[name] for name in NAMES if name in case.query}
    if pick % 4 and "If-Match" in (case.headers or {}) and not case.meta.is_negative_at(ParameterLocation.HEADER):
        case.headers["If-Match"] = "*"  # Any other is almost always out of date.
    if isinstance(case.body, dict) and not case.meta.is_negative_at(ParameterLocation.BODY):
        real = {"entity": entity, "at": moment, "occurred_at": moment}
        case.body |= {name: real[name] for name in real if case.body.get(name) is not None}
        case.body |= {name: "" for name in ("machine", "expect") if name in case.body}  # None is about users.
        case.body |= fitting(case, entity, moment)


def id_for(case, pick, keys):
    """The id of one that is there."""
    if "/tasks/bulk/{id}/" in case.operation.path:
        return {"id": str(BulkAction.objects.order_by("pk")[pick % 3].pk)}
    if "/tasks/{id}/" in case.operation.path:
        return {"id": str(one_of(operation_of(case), keys, pick))}
    if "/holds/{id}/" in case.operation.path:
        return {"id": str(Hold.objects.order_by("pk")[pick % 20].pk)}
    return {}


def fitting(case, entity, moment):
    """What goes with what else is sent, which a schema does not say."""
    if case.operation.path.endswith("/tasks/bulk/"):
        return bulk_of(case.body, moment)
    if case.operation.path.endswith("/tasks/{id}/move/"):
        return moved(case.body, moment)
    if case.operation.path.endswith("/preview/"):
        return previewed(case.body, moment)
    if case.operation.path.endswith("/events/"):
        known = {"name": "user.created", "entity": entity}  # Any other event is refused.
        return known | ({"payload": without_secrets(case.body["payload"])} if case.body.get("payload") else {})
    if case.operation.path.endswith("/holds/"):
        return held(case.body.get("scope"), entity) | ({"until": LATER} if case.body.get("until") else {})
    return {}


def moved(body, moment):
    """A time, or else by how much: ahead, as times do not go back before 1970."""
    by = {name: abs(body[name]) for name in ("by_days", "by_seconds") if body.get(name)}
    return by | {"at": None if by else moment}


def previewed(body, moment):
    """What there is to try: a timeline that is about accounts, or an event. No task follows a field of theirs."""
    body.pop("anchors", None)
    body.pop("event", None)  # Whose payload may have names that look like those of secrets.
    if "start" in body:
        return {"start": {"timeline": "account", "started_at": moment}}
    return {"event": {"name": "user.left"}}


def without_secrets(payload):
    """Nothing, where a name that was made up looks like that of a secret."""
    try:
        check_data("payload", payload)
    except InvalidInput:
        return {}
    return payload


def make_real_hooks(case, pick):
    """The same for webhooks: what there is, and topics that are told. No endpoint gets a URL at which anybody answers."""
    if pick % 5 and not case.meta.is_negative_at(ParameterLocation.PATH) and case.path_parameters:
        real = Delivery if "/deliveries/" in case.operation.path else Endpoint
        found = list(real.objects.order_by("pk").values_list("pk", flat=True))
        case.path_parameters = {"id": str(found[pick % len(found)]) if found else "0"}
    if pick % 4 and "If-Match" in (case.headers or {}) and not case.meta.is_negative_at(ParameterLocation.HEADER):
        case.headers["If-Match"] = "*"
    if isinstance(case.body, dict) and not case.meta.is_negative_at(ParameterLocation.BODY):
        real = {"url": "https://books.example.com/hook", "topics": ["task.completed"]}
        case.body |= {name: real[name] for name in real if name in case.body}
        if case.operation.method.upper() == "PATCH":
            case.body.pop("url", None)
        if "since" in case.body:
            case.body |= {"since": "2026-01-01T00:00:00Z"} | ({"until": LATER} if case.body.get("until") else {})


def operation_of(case):
    return case.operation.path.rstrip("/").rpartition("/")[2]


def one_of(operation, keys, pick):
    """A task: of five, four with which the operation can do something."""
    states = {"run-now": WAITING, "move": OPEN, "cancel": OPEN, "redrive": FINAL}.get(operation)
    fit = ScheduledTask.objects.filter(pk__in=keys, state__in=states or list(State)).order_by("pk")
    found = list(fit.values_list("pk", flat=True)) if pick % 5 else []
    return (found or keys)[pick % len(found or keys)]


def held(scope, entity):
    """What goes with a scope, which a schema does not say: its target among those there are, or an entity."""
    targets = {"task": "account.call", "timeline": "account", "queue": "default", "tag": "phone"}
    return {"target": targets.get(scope, ""), "entity": entity if scope == "entity" else None}


def bulk_of(body, moment):
    """What goes with an action, which a schema does not say: to a time, or by a span, only what is moved."""
    if isinstance(body.get("filter"), dict):
        body["filter"] |= {name: NAMES[name] for name in NAMES if body["filter"].get(name)}
    action = body.get("action")
    if action == "move" and (body.get("by_days") or body.get("by_seconds")):
        return {"at": None, "spread_seconds": None}
    times = {"at": moment if action == "move" else None, "by_days": None, "by_seconds": None}
    return times | ({} if action == "redrive" else {"spread_seconds": None})


class TestMadeUpRequests:
    def test_of_staff_find_no_fault(self, fuzz, staff):
        seen = fuzz(staff, examples=EACH)

        # An operation has so many different right requests only.
        assert seen["all"] >= CASES * (0.8 if ALL_WRONG else 0.5)
        assert not [status for status in seen if isinstance(status, int) and status >= 500]
        assert {200, 201, 400, 404, 409} <= seen.keys()
        assert len([label for label in seen if str(label).startswith(("GET ", "POST "))]) == 19  # Each did something.

    def test_of_an_owner_change_nothing(self, fuzz, ada):
        before = list(ScheduledTask.objects.order_by("pk").values()), Event.objects.count()

        seen = fuzz(ada, examples=15 if WHOLE else 5)

        assert {200, 400, 403, 404} <= seen.keys()
        assert seen[201] == seen[409] == 0
        assert (list(ScheduledTask.objects.order_by("pk").values()), Event.objects.count()) == before

    def test_about_webhooks_find_no_fault(self, fuzz, person, clock):
        made = [Endpoint(url="https://10.0.0.1/", topics=["task.completed"], created_at=clock.now) for _ in range(40)]
        for endpoint in made:  # Of this network: a sample to one is refused before it is sent.
            endpoint.secret = encrypted(new_secret())
        Endpoint.objects.bulk_create(made)
        ends = {"created_at": clock.now, "due_at": clock.now, "give_up_at": clock.now, "topic": "t", "body": "{}"}
        Delivery.objects.bulk_create(Delivery(endpoint=made[n], source=uuid7(), **ends) for n in range(10))

        seen = fuzz(person("hooker", *HOOKS), examples=5, webhooks=True)

        assert not [status for status in seen if isinstance(status, int) and status >= 500]
        assert {200, 201, 400, 404} <= seen.keys()
