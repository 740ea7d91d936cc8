"""The page of the demo: two pages beside each other, a clock, and buttons for what may go wrong."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.test import Client
from django.urls import reverse

from project.accounts.models import User
from project.accounts.services import sign_up
from project.demo import clock as demo_clock
from project.demo.mailing import sign_of_outage
from project.demo.operators import make_operator
from project.demo.worker import wish
from project.portal.models import Booking
from timeline.testing import StoryClock

DEMO = reverse("demo")
BEGIN = datetime(2026, 11, 24, 18, tzinfo=UTC)


@pytest.fixture
def running(settings, monkeypatch, tmp_path):
    """A clock that can be set, as the demo has one."""
    settings.DATA_DIR = tmp_path
    monkeypatch.setenv("DEMO_CLOCK", "")
    monkeypatch.setenv("DEMO_KEY", "a-key-that-was-printed")
    return demo_clock.SettableClock(tmp_path / "clock", seconds_per_day=12, begin=BEGIN)


@pytest.fixture
def ada(db, running):
    with StoryClock(BEGIN):
        make_operator(now=BEGIN)
        return sign_up("ada@example.com", "ada.example", now=BEGIN)


@pytest.fixture
def operator(ada):
    client = Client()
    client.get(DEMO, {"key": "a-key-that-was-printed"})
    return client


def press(client, button, **given):
    """Press a button as the page's script does; gives which pages it is to show."""
    where = reverse("demo-press", args=[button])
    return client.post(where, given, headers={"X-Requested-With": "fetch"}).json()


class TestTheWayIn:
    def test_is_the_key_that_was_printed(self, ada, client):
        assert client.get(DEMO, {"key": "another"}).url.startswith("/admin/login/")

        answer = client.get(DEMO, {"key": "a-key-that-was-printed"})

        assert answer.url == DEMO
        assert client.get(DEMO).status_code == 200

    def test_is_closed_to_customers(self, ada, client):
        client.force_login(ada)

        assert client.get(DEMO).url.startswith("/admin/login/")
        assert client.post(reverse("demo-press", args=["worker"])).url.startswith("/admin/login/")
        assert not wish().exists()

    def test_is_not_there_where_no_demo_runs(self, ada, operator, monkeypatch):
        monkeypatch.delenv("DEMO_CLOCK")

        assert operator.get(DEMO).status_code == 404
        assert operator.post(reverse("demo-press", args=["worker"])).status_code == 404

    def test_is_closed_where_no_key_was_made(self, ada, client, monkeypatch):
        monkeypatch.setenv("DEMO_KEY", "")

        assert client.get(DEMO, {"key": ""}).url.startswith("/admin/login/")


class TestThePage:
    def test_shows_the_customer_and_the_operator(self, operator, ada):
        text = operator.get(DEMO).content.decode()

        assert 'src="/my/' in text
        assert f"label=accounts.user&amp;id={ada.pk}" in text

    def test_lets_them_be_shown_within_it(self, operator, settings):
        settings.X_FRAME_OPTIONS = "SAMEORIGIN"

        assert "frame-ancestors 'self'" in operator.get(DEMO).headers["Content-Security-Policy"]

    def test_lets_no_other_page_be_shown_within_another(self, client, db):
        assert "frame-ancestors 'none'" in client.get("/").headers["Content-Security-Policy"]


class TestButtons:
    def test_the_clock_stands_and_goes_on(self, operator):
        press(operator, "clock", speed="stand")
        stands = demo_clock.now()

        assert demo_clock.is_standing()
        assert demo_clock.now() == stands
        press(operator, "clock", speed="fast")
        assert not demo_clock.is_standing()
        assert demo_clock.now() > stands

    def test_the_mail_server_is_down_and_back(self, operator):
        press(operator, "mail")
        assert sign_of_outage().exists()

        press(operator, "mail")
        assert not sign_of_outage().exists()

    def test_the_worker_is_asked_to_be_killed(self, operator):
        press(operator, "worker")

        assert wish().exists()
        assert "Worker killed" in operator.get(DEMO, {"part": ""}).content.decode()

    def test_ada_pays_once(self, operator, ada):
        shown = press(operator, "pay")
        first = User.objects.get(pk=ada.pk).payment_configured_at
        press(operator, "pay")

        assert first is not None
        assert User.objects.get(pk=ada.pk).payment_configured_at == first
        assert shown["customer"].startswith("/my/")

    def test_somebody_applies_for_a_passport_and_its_pages_are_shown(self, operator):
        shown = press(operator, "apply")

        booking = Booking.objects.get()
        assert booking.reference.startswith("passport-")
        assert shown["customer"] == reverse("booking", args=[shown["booking"]])
        assert f"id={booking.pk}" in shown["operator"]

    def test_without_the_script_the_page_is_shown_anew(self, operator):
        answer = operator.post(reverse("demo-press", args=["apply"]))

        assert f'src="{reverse("apply")}' in operator.get(answer.url).content.decode()

    def test_there_is_no_other(self, operator):
        assert operator.post(reverse("demo-press", args=["everything"])).status_code == 404
