"""Hostile values at every address of ours, by everybody: nothing breaks, and nobody is shown what is another's."""

from __future__ import annotations

import json
from itertools import cycle, islice
from urllib.parse import quote, urlencode

import pytest
from django.db import router
from django.test import Client

from project.accounts.models import User
from tests.asking import WHOLE
from tests.hostile.routes import Route, names, routes
from tests.people import log_in, permit
from tests.test_views import OnlyDefault
from timeline import Timeline, after, task
from timeline.lifecycle import Reason
from timeline.models import ref_of
from timeline.testing import only_timelines

URLS = "tests.hostile.addresses"
ROUTES = routes(URLS)
pytestmark = [pytest.mark.django_db, pytest.mark.urls(URLS)]

WORDS = "words-about-ben"  # Of a row of his, and in no request.
VALUES = [
    "\x00",
    "a\ud800b",
    "%(name)s %s {0} {x}",
    "<b>&\"'",
    "9" * 400,
    "-1",
    "1e400",
    "x" * 3000,
    "../..//",
    "(a+)+$",
    "10000-01-01T00:00:00Z",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59.999999-14:00",
    "{01900000-0000-7000-8000-000000000000}",
    "\u0661\u202e\U0010ffff",
]
ROLES = ["nobody", "owner", "clerk", "viewer", "operator"]
SEES_ALL = {"viewer", "operator"}


class Care(Timeline):
    """About accounts."""

    entity = "accounts.User"

    @task(after(days=1))
    def greet(self, user) -> None: ...


@pytest.fixture(autouse=True)
def _alone(monkeypatch, clock):
    monkeypatch.setattr(router, "routers", [OnlyDefault()])
    with only_timelines(Care):
        yield


@pytest.fixture
def account(db, now):
    """Make an account."""
    return lambda name, **more: User.objects.create(
        email=f"{name}@example.com", signed_up_at=now, trial_ends_at=now, **more
    )


@pytest.fixture
def bens(account, make_task, now):
    """A row of somebody else's."""
    ref = ref_of(account("ben"))
    said = Reason.operator(WORDS, WORDS)
    return make_task(
        task_key="care.greet",
        entity_label=ref.label,
        entity_id=ref.id,
        payload={"said": WORDS},
        reason=said.text,
        actor=said.actor,
    )


@pytest.fixture
def by(account):
    """Ask as somebody of a role; what would be a 500 is answered as such."""

    def make(role):
        client = Client(raise_request_exception=False)
        if role != "nobody":
            user = account(role, is_staff=role != "owner", is_superuser=role == "operator")
            permit(user, *{"viewer": ["view_scheduledtask", "view_endpoint", "view_delivery"]}.get(role, []))
            log_in(client, user)
        return client

    return make


def percent(value):
    return quote(value.encode(errors="surrogatepass"), safe="")


def attacks(route: Route, values):
    """Requests to a route: hostile in what is captured, in the query, in a form, in a body and in headers."""
    asked = names()
    for value in VALUES if "<" in route.pattern else ():
        yield "get", route.filled(percent(value)), {}
    for value in values:
        said = percent(value)
        query = "&".join(f"{name}={said}" for name in asked)
        yield "get", f"{route.filled('1')}?{query}", {}
        yield "post", route.filled(said), {"data": query, "content_type": "application/x-www-form-urlencoded"}
        body = json.dumps(dict.fromkeys(asked, value))
        yield "post", route.filled("1"), {"data": body, "content_type": "application/json"}
        raw = value.encode(errors="surrogatepass").decode("latin-1")
        headers = ("AUTHORIZATION", "IF_MATCH", "IF_NONE_MATCH", "IDEMPOTENCY_KEY", "ACCEPT", "X_TIMELINE_SEEN")
        yield "get", route.filled("1"), {f"HTTP_{name}": raw for name in headers}


def aimed(route: Route, bens):
    """Requests for what is another's, by its true name."""
    ids = {"id": bens.entity_id, "label": bens.entity_label, "q": bens.entity_id, "task": str(bens.pk), "part": "past"}
    for values in ((str(bens.pk),), (bens.entity_label, bens.entity_id), (bens.entity_id,)):
        yield "get", f"{route.filled(*values)}?{urlencode(ids)}", {}
    yield "get", f"{route.filled(str(bens.pk))}?{urlencode({'part': 'past'})}", {}
    yield "post", route.filled(str(bens.pk)), {"data": {"action": "cancel", "task": str(bens.pk), "reason": "x"}}


def told(client, method, address, given):
    """Status and content of an answer."""
    answer = getattr(client, method)(address, **given)
    content = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return answer.status_code, content


def is_broken(client, method, address, given):
    """Whether it is a fault of the server's. Where nobody polls, health says so with 503."""
    status, _content = told(client, method, address, given)
    return status >= 500 and not (status == 503 and address.startswith("/health/"))


class TestRoutes:
    def test_are_those_of_all_faces(self):
        found = {route.name for route in ROUTES}

        assert {"health", "metrics", "their-calendar", "task-list", "webhook-delivery", "docs"} <= found
        assert {"timeline_scheduledtask_changelist", "timeline_webhooks_delivery_changelist"} <= found
        assert len(ROUTES) > 60

    def test_ask_for_what_is_read(self):
        assert {"cursor", "limit", "state", "due_after", "moves", "reason", "since", "part", "url"} <= set(names())


class TestEverybody:
    @pytest.mark.parametrize("role", ROLES)
    def test_breaks_nothing_by_hostile_values(self, by, bens, role):
        """
        In what an address captures, all; beside it a few at each address, and at each address other ones: who may do the most
        tries more, and ``WHOLE=1`` all.
        """
        client, turning = by(role), cycle(VALUES)
        most = len(VALUES) if WHOLE else 3 if role == "operator" else 1

        broken = [
            (method, address[:150], list(given))
            for route in ROUTES
            for method, address, given in attacks(route, list(islice(turning, most)))
            if is_broken(client, method, address, given)
        ]

        assert broken == []

    @pytest.mark.parametrize("role", [role for role in ROLES if role not in SEES_ALL])
    def test_is_shown_nothing_of_anothers_by_its_name(self, by, bens, role):
        client = by(role)

        shown = [
            (method, address)
            for route in ROUTES
            for method, address, given in aimed(route, bens)
            if WORDS.encode() in told(client, method, address, given)[1]
        ]

        assert shown == []
        bens.refresh_from_db()
        assert bens.seq == 0

    def test_is_shown_it_who_may_see_it(self, by, bens):
        """So that the search above would find it."""
        client = by("operator")
        requests = (request for route in ROUTES for request in aimed(route, bens))

        assert any(WORDS.encode() in told(client, *request)[1] for request in requests)
