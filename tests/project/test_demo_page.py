"""The page of the demo: two pages beside each other, a clock, and buttons for what may go wrong."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html import unescape

import pytest
from django.test import Client
from django.urls import reverse

from project.accounts.models import User
from project.accounts.services import sign_up
from project.demo import clock as demo_clock
from project.demo.jobs import make_worker
from project.demo.mailing import sign_of_outage
from project.demo.operators import make_operator
from project.demo.worker import wish
from project.portal.models import Booking
from timeline.django_tasks.functions import Functions  # of django_tasks
from timeline.models import ScheduledTask
from timeline.ojs.kinds import Jobs  # of ojs
from timeline.registry import registry
from timeline.testing import StoryClock, only_timelines

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

    def test_leads_to_pages_that_are_there(self, operator):
        links = re.findall(r'<a href="([^"]+)" target="operator">', operator.get(DEMO).content.decode())

        assert len(links) > 4
        assert {operator.get(unescape(link)).status_code for link in links} == {200}

    def test_calls_them_as_they_call_themselves(self, operator):
        """Whoever reads a word here looks for it there."""
        links = re.findall(r'<a href="([^"]+)" target="operator">([^<]+)</a>', operator.get(DEMO).content.decode())

        pages = {words: operator.get(unescape(where)).content.decode() for where, words in links if words != "Ada"}
        assert [words for words in pages if words not in pages[words]] == []

    def test_says_what_may_be_pressed_when_nothing_is_ahead(self, operator):
        """The trial of Ada is over within a minute. Then a payment cancels nothing."""
        text = operator.get(DEMO).content.decode()

        assert "while something is ahead for her" in text
        assert "<em>Extend by 14 days</em>" in text

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


class TestJobs:  # of ojs
    """What others' code puts: where the demo has made a key for workers outside."""

    @pytest.fixture(autouse=True)
    def _key(self, ada, monkeypatch, settings):
        monkeypatch.setenv("JOBS_KEY", "the-key")
        settings.TIMELINE_OJS = {"AUTHENTICATE": "project.demo.jobs.worker_of"}
        make_worker(now=BEGIN)
        functions: set[type] = set()
        known = {definition.cls for definition in registry.everywhere()}
        functions = {cls for cls in known if issubclass(cls, Functions)}  # of django_tasks
        with only_timelines(Jobs, *functions):
            yield

    def ask(self, path, body, key="the-key"):
        return Client().post(
            f"/ojs/v1/{path}",
            body,
            content_type="application/openjobspec+json",
            headers={"Authorization": f"Bearer {key}"},
        )

    def test_a_function_of_djangos_tasks_is_enqueued_and_its_row_has_the_result(self, operator, ada):  # of django_tasks
        shown = press(operator, "export")

        with StoryClock(demo_clock.now()) as clock:
            clock.advance(seconds=1)
        row = ScheduledTask.objects.get(run=None)
        assert shown == {"operator": reverse("admin:timeline_scheduledtask_change", args=[row.pk])}
        assert (row.state, row.result["website"]) == ("completed", "ada.example")
        assert "ada.example" in operator.get(shown["operator"]).content.decode()

    def test_a_job_waits_for_a_worker_and_the_page_says_how_to_start_one(self, operator, monkeypatch):
        monkeypatch.setenv("PATH", "")
        shown = press(operator, "job")

        page = unescape(operator.get(DEMO, {"part": ""}).content.decode())
        assert "No worker took it yet" in page
        assert "JOBS_KEY=the-key node project/worker.mjs http://testserver" in page
        assert "There is no node on this machine's path" in page
        assert "It is due and waits for a worker." in operator.get(shown["operator"]).content.decode()

    @pytest.mark.parametrize(
        ("path", "told", "words"),
        [
            ("ack", {"result": {"en-US": "€9.90"}}, "A worker in Node has told: €9.90."),
            ("ack", {"result": {"a": 1, "b": "<script>"}}, 'has told: {"a": 1, "b": "<script>"}.'),
            ("ack", {"result": ["x" * 9000]}, f'has told: ["{"x" * 498}.'),
            ("nack", {"error": {"code": "RangeError", "message": "No such currency"}}, "It failed: No such currency"),
            ("nack", {"error": {"code": "x", "message": "Broken", "retryable": False}}, "It failed for good: Broken"),
        ],
        ids=["succeeds", "tells no prices", "tells much", "fails", "fails for good"],
    )
    def test_the_page_says_how_it_ended(self, operator, path, told, words):
        press(operator, "job")
        [job] = self.ask("workers/fetch", {"queues": ["node"], "worker_id": "node-1"}).json()["jobs"]
        assert "node-1 works on it." in operator.get(DEMO, {"part": ""}).content.decode()

        self.ask(f"workers/{path}", {"job_id": job["id"], "worker_id": "node-1", **told})

        page = operator.get(DEMO, {"part": ""}).content.decode()
        assert words in unescape(page)
        assert "<script>" not in page

    def test_a_worker_needs_the_key_and_may_do_nothing_else(self, operator):
        assert self.ask("workers/fetch", {"queues": ["node"]}, key="another").status_code == 401
        assert self.ask("jobs", {"type": "price.tell", "args": []}).status_code == 403

    def test_there_are_none_without_a_key(self, operator, monkeypatch):
        monkeypatch.delenv("JOBS_KEY")

        assert "Job for Node" not in operator.get(DEMO).content.decode()
        assert press(operator, "job") == press(operator, "export") == {}
        assert self.ask("workers/fetch", {"queues": ["node"]}, key="").status_code == 401
        assert not ScheduledTask.objects.filter(run=None).exists()
