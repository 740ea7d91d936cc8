"""Queues, events, and who may do what."""

from __future__ import annotations

import base64
import os
import re
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings as of_django
from django.contrib.auth.models import Permission
from django.core.management import call_command
from django.test import Client

from project.accounts.models import User
from tests.people import log_in
from timeline.models import ScheduledTask
from timeline.ojs.checks import check_settings
from timeline.ojs.models import PutAway
from timeline.policy import TimelinePolicy


class TestQueues:
    def test_count_jobs_as_clients_see_them(self, server):
        for options in ({}, {}, {"scheduled_at": "+PT1H"}, {"pending": True}, {"expires_at": "+PT1S"}):
            server.enqueue(queue="q", **options)
        server.enqueue(queue="q", priority=9, scheduled_at="+PT1S")
        server.later(seconds=2)
        server.ack(server.fetch("q")[0]["id"])
        server.fetch("q")

        answer = server.get("v1/queues/q/stats")

        counts = {name: count for name, count in answer["queue"].items() if count and name not in ("name", "status")}
        assert counts == {"available": 1, "scheduled": 1, "pending": 1, "active": 1, "completed": 1, "discarded": 1}
        assert answer["stats"]["completed_last_hour"] == 1
        assert [queue["name"] for queue in server.get("v1/queues")["queues"]] == ["q"]

    def test_may_be_paused_and_resumed(self, server):
        job = server.enqueue(queue="q")
        assert server.post("v1/queues/q/pause")["queue"]["paused"] is True
        server.enqueue(queue="q")
        server.enqueue(queue="other")

        assert [each["queue"] for each in server.fetch("q", "other", count=9)] == ["other"]
        assert server.get("v1/queues/q/stats")["queue"]["status"] == "paused"
        assert [each["status"] for each in server.get("v1/queues")["queues"]] == ["active", "paused"]

        server.post("v1/queues/q/resume")
        assert server.fetch("q")[0]["id"] == job["id"]
        server.post("v1/queues/Q/pause", status=400)


class TestEvents:
    def test_tell_the_life_of_a_job_in_order(self, server):
        job = server.enqueue(queue="q", retry={"initial_interval": "PT1S", "jitter": False})["id"]
        server.fetch("q", worker_id="w")
        server.later(seconds=2)
        server.nack(job)
        server.later(seconds=2)
        server.fetch("q", worker_id="w")
        server.ack(job, result={"n": 1})

        events = server.get("v1/events?queues=q")["events"]

        assert [event["type"].partition(".")[2] for event in events] == [
            "enqueued", "started", "failed", "retrying", "started", "completed",
        ]  # fmt: skip
        assert {event["subject"] for event in events} == {job}
        assert len({event["id"] for event in events}) == 6
        assert events[2]["data"]["duration_ms"] == 2000
        assert events[3]["data"]["next_retry_at"] == "2026-03-01T09:00:03Z"
        assert events[5]["data"] == {
            "job_type": "email.send", "queue": "q", "duration_ms": 0, "attempt": 2, "result": {"n": 1},
        }  # fmt: skip

    def test_tell_the_other_ends_too(self, server):
        server.delete(f"v1/jobs/{server.enqueue()['id']}")
        server.enqueue(expires_at="+PT1S")
        server.enqueue(scheduled_at="+PT1H")
        final = server.enqueue(retry={"max_attempts": 1}, priority=9)["id"]
        server.fetch()
        server.nack(final)
        server.later(seconds=2)
        server.fetch()

        for name, count in (("cancelled", 1), ("expired", 1), ("scheduled", 1), ("discarded", 1), ("enqueued", 3)):
            found = server.get(f"v1/events?types=job.{name}&job_types=email.send")["events"]
            assert [event["type"] for event in found] == [f"job.{name}"] * count

    def test_are_read_on_from_where_one_was(self, server):
        for _each in range(3):
            server.enqueue()
        first = server.get("v1/events?types=job.enqueued&limit=1")["events"][0]
        everything = server.get("v1/events")

        assert first["subject"] == everything["events"][-1]["subject"]
        after = everything["events"][0]["id"]
        answer = server.get(f"v1/events?after={after}&limit=1")
        assert (len(answer["events"]), answer["has_more"]) == (1, True)
        answer = server.get(f"v1/events?after={answer['cursor']}&limit=1")
        assert (len(answer["events"]), answer["has_more"]) == (1, False)
        assert server.get("v1/events?types=nothing")["events"] == []
        server.get("v1/events?after=x", status=400)
        server.get("v1/events?limit=0", status=400)


class Tenants(TimelinePolicy):
    """A policy that lets users know of the jobs of their own queue, and do all with them."""

    def allows_jobs(self, user, right):
        return True

    def visible_jobs(self, rows, user):
        return rows.filter(queue=user.website.partition(".")[0])


def by_basic(request):
    """Find a user by what stands in the header."""
    kind, _blank, said = request.headers.get("Authorization", "").partition(" ")
    name = base64.b64decode(said).decode().partition(":")[0] if kind == "Basic" else ""
    return User.objects.filter(email=name).first()


def by_key(request):
    """Find a user as the page about this says that a site does, for its account ``node``."""
    page = Path(of_django.BASE_DIR, "docs/how-to/ojs.md").read_text()
    [code] = [code for code in re.findall(r"```py\n(.*?)```", page, re.DOTALL) if "def who" in code]
    names = {}
    exec(code.replace('username="node"', 'email="ada@example.com"'), names)  # noqa: S102 (a page's example)
    return names["who"](request)


@pytest.fixture
def ada(server, settings, user):
    """A server that knows who asks by a header, and a user of it."""
    settings.TIMELINE_OJS = {"AUTHENTICATE": "tests.ojs.test_upkeep.by_basic"}
    server.headers = {"Authorization": f"Basic {base64.b64encode(b'ada@example.com:').decode()}"}
    return user


def permit(user, *names):
    user.user_permissions.add(*Permission.objects.filter(content_type__app_label="timeline_ojs", codename__in=names))


class TestAccess:
    def test_is_for_nobody_who_is_not_known(self, server, ada):
        server.headers = {}
        for method, path in [("POST", "jobs"), ("POST", "workers/fetch"), ("GET", "dead-letter"), ("GET", "events")]:
            assert server.ask(method, f"v1/{path}", status=401)["error"]["code"] == "unauthenticated"
        server.get("manifest")
        server.get("v1/health")

    def test_goes_by_a_key_as_the_page_has_it(self, server, ada, settings, monkeypatch):
        settings.TIMELINE_OJS = {"AUTHENTICATE": "tests.ojs.test_upkeep.by_key"}
        monkeypatch.setitem(os.environ, "JOBS_KEY", "sesame")
        permit(ada, "enqueue_jobs")
        for given, status in [("Bearer sesame", 201), ("Bearer open", 401), ("sesame", 401), ("", 401)]:
            server.headers = {"Authorization": given}
            server.enqueue(status)

    def test_goes_by_permissions(self, server, ada):
        server.enqueue(403)
        permit(ada, "enqueue_jobs")
        job = server.enqueue()["id"]
        error = server.post("v1/workers/fetch", {"queues": ["default"]}, 403)["error"]
        assert "timeline_ojs.work_jobs" in error["message"]
        server.get("v1/cron", status=403)

        permit(ada, "work_jobs", "manage_jobs")
        server.fetch()
        server.get("v1/cron")
        server.delete(f"v1/jobs/{job}")
        assert ScheduledTask.objects.get().actor == ada.get_username()

    def test_is_for_no_user_who_is_not_active(self, server, ada):
        permit(ada, "enqueue_jobs")
        User.objects.update(is_active=False)

        server.enqueue(401)

    def test_may_be_a_policy_of_the_hosts(self, server, ada, settings):
        settings.TIMELINE = {"POLICY": "tests.ojs.test_upkeep.Tenants"}
        mine, others = server.enqueue(queue="ada")["id"], server.enqueue(queue="bob")["id"]

        assert [job["id"] for job in server.fetch("ada", "bob", count=9)] == [mine]
        server.ack(mine)
        for method, path in [(server.get, f"v1/jobs/{others}"), (server.delete, f"v1/jobs/{others}")]:
            method(path, status=404)
        server.ack(others, 404)
        assert [queue["name"] for queue in server.get("v1/queues")["queues"]] == ["ada"]
        assert {event["data"]["queue"] for event in server.get("v1/events?queues=ada,bob")["events"]} == {"ada"}

    def test_is_not_opened_by_a_session_without_a_token_of_the_form(self, server, settings, user):
        settings.TIMELINE_OJS = {}
        permit(user, "enqueue_jobs")
        server.client = Client(enforce_csrf_checks=True)
        log_in(server.client, user)

        server.enqueue(401)

        server.client = Client()
        log_in(server.client, user)
        server.enqueue()


class TestSettings:
    def test_are_checked(self, settings):
        for given, said in (
            ({"LEESE": 1}, "LEASE"),
            ({"LEASE": 5}, "timedelta"),
            ({"MAX_FETCH": 0}, "positive"),
            ({"AUTHENTICATE": "no.where"}, "no"),
            ([], "dict"),
        ):
            settings.TIMELINE_OJS = given
            [error] = check_settings(None)
            assert error.id == "timeline_ojs.E001"
            assert said in error.msg

    def test_that_are_misspelt_are_told(self, settings):
        settings.TIMELINE_OJSS = {"ANYBODY": True}

        [error] = check_settings(None)

        assert "TIMELINE_OJSS" in error.msg

    def test_that_let_everybody_do_everything_are_told(self, settings):
        settings.TIMELINE_OJS = {"ANYBODY": True}
        assert [warning.id for warning in check_settings(None)] == ["timeline_ojs.W001"]

        settings.TIMELINE_OJS = {}
        assert check_settings(None) == []


class TestPruning:
    def test_forgets_dead_letters_put_away_with_their_rows(self, server):
        job = server.enqueue(retry={"max_attempts": 1, "on_exhaustion": "dead_letter"})["id"]
        server.fetch()
        server.nack(job)
        server.delete(f"v1/dead-letter/{job}")
        assert PutAway.objects.exists()

        call_command("timeline_prune", days=1, stdout=StringIO())

        assert not PutAway.objects.exists()
        server.get(f"v1/jobs/{job}", status=404)


class TestDatabase:
    @pytest.mark.django_db(databases=["default", "other"])
    def test_may_be_another(self, server, settings):
        settings.TIMELINE_OJS = {"ANYBODY": True, "DATABASE": "other"}

        job = server.enqueue(unique={})["id"]
        server.enqueue(409, unique={})
        assert [each["id"] for each in server.fetch()] == [job]
        server.ack(job)

        assert ScheduledTask.objects.using("other").get().state == "completed"
        assert not ScheduledTask.objects.using("default").exists()
        assert server.get("v1/queues/default/stats")["queue"]["completed"] == 1
        server.post("v1/cron", {"name": "n", "expression": "@daily", "type": "a", "args": []}, 201)
        server.delete("v1/cron/n")
