"""Schedules, and the jobs that they make."""

from __future__ import annotations

from datetime import timedelta

import pytest

from timeline.engine.groups import run
from timeline.models import ScheduledTask
from timeline.ojs.crons import make
from timeline.ojs.models import Cron

BODY = {"name": "daily", "expression": "0 10 * * *", "job_template": {"type": "report.make", "args": [1]}}


def register(server, status=201, **body):
    return server.post("v1/cron", {**BODY, **body}, status)


def come_to_pass(server):
    """What a worker of ours does with the tasks of schedules that are due."""
    server.poll()
    ids = list(ScheduledTask.objects.filter(task_key="ojs_cron.make", state="available").values_list("pk", flat=True))
    return run(task_ids=ids, clock=lambda: server.now, using="default", worker="w")


class TestRegister:
    def test_tells_when_it_comes_next(self, server):
        cron = register(server, timezone="Asia/Tokyo", x_owner="ops")["cron"]

        assert cron["next_run_at"] == "2026-03-02T01:00:00Z"
        assert (cron["enabled"], cron["overlap_policy"], cron["x_owner"]) == (True, "skip", "ops")
        assert cron["job_template"] == BODY["job_template"]
        assert server.get("v1/cron")["crons"] == [cron]

    def test_takes_the_shape_of_the_binding_too(self, server):
        body = {"name": "hourly", "cron": "@hourly", "type": "a.b", "args": [], "options": {"queue": "q"}}

        cron = server.post("v1/cron", body, 201)["cron_job"]

        assert (cron["cron"], cron["type"], cron["next_run_at"]) == ("@hourly", "a.b", "2026-03-01T10:00:00Z")

    def test_takes_a_name_once(self, server):
        register(server)

        assert register(server, 409)["error"]["code"] == "duplicate"
        assert ScheduledTask.objects.count() == 1

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({"name": ""}, "name"),
            ({"expression": "not a cron"}, "expression"),
            ({"expression": "99 25 32 13 8"}, "expression"),
            ({"expression": "0 0 30 2 *"}, "expression"),
            ({"expression": None}, "expression"),
            ({"timezone": "Mars/Base"}, "timezone"),
            ({"timezone": "../etc"}, "timezone"),
            ({"overlap_policy": "perhaps"}, "overlap_policy"),
            ({"enabled": 1}, "enabled"),
            ({"job_template": {"args": []}}, "job_template.type"),
            ({"job_template": {"type": "a", "args": [], "id": "x"}}, "job_template.id"),
            ({"job_template": {"type": "a", "args": [], "state": "\x00"}}, "job_template"),
            ({"job_template": {"type": "a", "args": [], "errors": "\ud800"}}, "job_template"),
            ({"job_template": {"type": "a", "args": [], "errors": "x" * 70_000}}, "job_template"),
            ({"job_template": {"type": "a", "args": ["x" * (65_536 - 40)]}}, "job_template.args, meta or options"),
        ],
    )
    def test_names_what_is_wrong(self, server, body, field):
        assert register(server, 400, **body)["error"]["details"]["field"] == field
        assert not Cron.objects.exists()


class TestMaking:
    def test_makes_a_job_each_time_and_once(self, server):
        register(server)
        server.now += timedelta(hours=1, seconds=5)

        come_to_pass(server)
        assert come_to_pass(server) == []

        [job] = server.fetch(count=9)
        assert (job["type"], job["args"], job["meta"]) == ("report.make", [1], {"cron_name": "daily"})
        cron = server.get("v1/cron")["crons"][0]
        assert (cron["last_run_at"], cron["next_run_at"]) == ("2026-03-01T10:00:00Z", "2026-03-02T10:00:00Z")
        assert [event["data"]["job_id"] for event in server.get("v1/events?types=cron.triggered")["events"]] == [
            job["id"]
        ]

    def test_makes_up_for_nothing_that_nobody_was_there_for(self, server):
        register(server)
        server.now += timedelta(days=5)

        come_to_pass(server)

        assert len(server.fetch(count=9)) == 1
        assert Cron.objects.get().next_run_at > server.now

    @pytest.mark.parametrize(("policy", "states"), [("skip", ["active"]), ("allow", ["active", "available"])])
    def test_goes_by_the_policy_while_the_last_job_is_open(self, server, policy, states):
        register(server, overlap_policy=policy)
        for _day in range(2):
            server.now += timedelta(days=1)
            come_to_pass(server)
            server.fetch() if _day == 0 else None

        rows = ScheduledTask.objects.filter(task_key="ojs.report__make").order_by("pk")
        assert [row.state for row in rows] == states
        if policy == "skip":
            [event] = server.get("v1/events?types=cron.skipped")["events"]
            assert (event["data"]["reason"], event["data"]["existing_job_id"]) == ("overlap_skip", rows[0].occurrence)

    def test_may_cancel_the_last_job(self, server):
        register(server, overlap_policy="cancel_previous")
        for _day in range(2):
            server.now += timedelta(days=1)
            come_to_pass(server)

        rows = ScheduledTask.objects.filter(task_key="ojs.report__make").order_by("pk")
        assert [row.state for row in rows] == ["cancelled", "available"]

    def test_may_let_the_next_job_wait_for_the_last(self, server):
        register(server, overlap_policy="enqueue")
        for _day in range(2):
            server.now += timedelta(days=1)
            come_to_pass(server)
        other = server.enqueue()["id"]

        first = server.fetch(count=9)

        assert [job["type"] for job in first] == ["report.make", "email.send"]
        assert first[1]["id"] == other
        assert server.fetch() == []
        server.ack(first[0]["id"])
        assert [job["type"] for job in server.fetch(count=9)] == ["report.make"]

    def test_leaves_no_job_behind_that_waits_when_it_is_removed(self, server):
        register(server, overlap_policy="enqueue")
        for _day in range(3):
            server.now += timedelta(days=1)
            come_to_pass(server)
        first, *_none = server.fetch(count=9)
        server.delete("v1/cron/daily")
        assert server.fetch(count=9) == []

        server.ack(first["id"])
        second, *none = server.fetch(count=9)
        assert none == []
        server.ack(second["id"])
        assert len(server.fetch(count=9)) == 1

    def test_that_has_many_jobs_waiting_asks_the_database_no_more(self, server, django_assert_max_num_queries):
        register(server, overlap_policy="enqueue")
        for _day in range(9):
            server.now += timedelta(days=1)
            come_to_pass(server)
        server.enqueue()
        assert len(server.fetch()) == 1
        with django_assert_max_num_queries(25):
            assert [job["type"] for job in server.fetch()] == ["email.send"]

    def test_goes_on_though_a_job_of_it_is_refused(self, server, settings):
        """As a deploy has other rules than those that it was taken by."""
        register(server, job_template={"type": "report.make", "args": [], "meta": {"colour": "red"}})
        settings.TIMELINE = {**getattr(settings, "TIMELINE", {}), "SECRET_NAMES": ["colour"]}
        server.later(hours=1)

        come_to_pass(server)

        [event] = server.get("v1/events?types=cron.skipped")["events"]
        assert "colour" in event["data"]["reason"]
        assert ScheduledTask.objects.open().get().nominal_at == server.now + timedelta(days=1)

    def test_ends_with_its_removal(self, server):
        register(server)
        assert server.delete("v1/cron/daily")["deleted"] is True
        server.now += timedelta(days=1)

        assert come_to_pass(server) == []
        assert server.get("v1/cron")["crons"] == []
        server.delete("v1/cron/daily", status=404)

    def test_makes_nothing_if_it_was_removed_meanwhile(self, server):
        register(server)
        Cron.objects.all().delete()

        assert make("daily", server.now, now=server.now, using="default") == {"cron_name": "daily"}
        assert ScheduledTask.objects.count() == 1
