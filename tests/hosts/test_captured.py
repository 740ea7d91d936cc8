"""A host mounts what is ours below a prefix that captures something."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from django.db import router
from django.test import Client

from tests.api.conftest import ROOT, Account
from tests.people import log_in, permit
from tests.test_views import OnlyDefault
from timeline.api.urls import routes
from timeline.calendar.tokens import calendar_token
from timeline.models import ref_of
from timeline.testing import only_timelines

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.hosts.captured")]

MOUNTED = ["/api/v2", "/t/acme/api", "/shops/7/x/api", "/old/acme/api"]
MADE_UP = {
    "<uuid:pk>": "01900000-0000-7000-8000-000000000000",
    "<int:pk>": "1",
    "<str:label>": "accounts.user",
    "<timeline_key:id>": "1",
    "<timeline_key:group>": "x",
}


def address_of(route):
    """An address of a route, with made-up keys."""
    address = str(route.pattern)
    for captured, value in MADE_UP.items():
        address = address.replace(captured, value)
    return address


PATHS = [*map(address_of, (route for route in routes() if route.name != "nothing-here")), "nothing/"]


@pytest.fixture(autouse=True)
def _known(clock):
    with only_timelines(Account):
        yield


@pytest.fixture
def staff(user):
    user.is_staff = True
    user.set_unusable_password()
    user.save()
    permit(user, "view_scheduledtask", "add_event", "cancel_scheduledtask", "view_endpoint", "view_delivery")
    return user


@pytest.fixture
def client(staff):
    client = Client(raise_request_exception=False)
    log_in(client, staff)
    return client


@pytest.fixture
def rows(make_task, user, now):
    """More than a page has."""
    ref = ref_of(user)
    about = {"entity_label": ref.label, "entity_id": ref.id}
    return [make_task(task_key="account.greet", scheduled_at=now + timedelta(days=day), **about) for day in range(3)]


class TestRoutes:
    def test_are_all_made_up_for(self):
        """What a new route captures gets a value above."""
        assert not [path for path in PATHS if "<" in path]

    @pytest.mark.parametrize("method", ["get", "post", "options"])
    def test_answer_as_without_a_prefix(self, client, method):
        def codes(root):
            ask = partial(getattr(client, method), data={}, content_type="application/json")
            return {path: ask(f"{root}/{path}").status_code for path in PATHS}

        usual = codes(ROOT)

        assert {prefix: codes(prefix) for prefix in MOUNTED} == dict.fromkeys(MOUNTED, usual)
        assert max(usual.values()) < 500

    @pytest.mark.parametrize("prefix", MOUNTED)
    def test_lead_on_below_their_prefix(self, client, prefix, rows):
        first = client.get(f"{prefix}/tasks/", {"limit": 2}).json()
        second = client.get(first["next"]).json()

        assert f"{prefix}/tasks/?" in first["next"]
        assert [row["id"] for row in first["results"] + second["results"]] == [str(row.pk) for row in rows]
        assert client.get(f"{prefix}/tasks/{rows[0].pk}/").json()["id"] == str(rows[0].pk)
        assert (
            client.post(
                f"{prefix}/tasks/{rows[0].pk}/cancel/", {"reason": "x"}, content_type="application/json"
            ).json()["state"]
            == "cancelled"
        )

    @pytest.mark.parametrize("prefix", MOUNTED)
    def test_are_described_below_their_prefix(self, client, prefix):
        page = client.get(f"{prefix}/docs/")

        assert page.status_code == 200
        assert f"{prefix}/schema/" in client.get(f"{prefix}/docs/?script").content.decode()
        assert client.get(f"{prefix}/schema/").status_code == 200


class TestViews:
    @pytest.mark.parametrize("prefix", ["/t/acme", "/shops/7/x", "/old/acme"])
    @pytest.mark.parametrize("name", ["health", "metrics"])
    def test_answer_below_a_prefix(self, client, monkeypatch, prefix, name):
        monkeypatch.setattr(router, "routers", [OnlyDefault()])

        assert client.get(f"{prefix}/{name}/").status_code in (200, 503)

    @pytest.mark.parametrize("prefix", ["/t/acme", "/shops/7/x"])
    def test_show_a_calendar_below_a_prefix(self, client, staff, prefix):
        answer = client.get(f"{prefix}/calendar/{calendar_token(staff)}.ics")

        assert answer.status_code == 200
        assert client.get(f"{prefix}/calendar/x.ics").status_code == 404
