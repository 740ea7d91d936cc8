"""What a narrowed caller does to jobs of others, and what operators hold, is kept from workers outside."""

from __future__ import annotations

import pytest

from project.accounts.models import User
from tests.rows import NOW
from timeline.models import Hold, LogEntry, ScheduledTask, Scope
from timeline.policy import TimelinePolicy

UNIQUE = {"keys": ["type"]}


class ByQueue(TimelinePolicy):
    """Each user sees the queue that is called as they are."""

    def allows_jobs(self, user, right):
        """Everybody who is known may do all."""
        return True

    def visible_jobs(self, rows, user):
        """Those of their queue."""
        return rows.filter(queue=user.email.partition("@")[0])

    def allows_queue(self, user, queue):
        """Into theirs, and into one for all."""
        return queue in (user.email.partition("@")[0], "all")


@pytest.fixture
def tenants(server, settings, db):
    """Be somebody: ``as_user(name)``."""
    settings.TIMELINE_OJS = {"AUTHENTICATE": "tests.ojs.test_rights_beside.who"}
    settings.TIMELINE = {**getattr(settings, "TIMELINE", {}), "POLICY": "tests.ojs.test_rights_beside.ByQueue"}
    for name in ("ada", "eve"):
        User.objects.create(email=f"{name}@example.com", signed_up_at=NOW, trial_ends_at=NOW)

    def as_user(name):
        server.headers = {"X-Name": name}

    return as_user


def who(request):
    """The user whom a header names."""
    return User.objects.filter(email=request.headers.get("X-Name", "") + "@example.com").first()


class TestJobsOfOthers:
    @pytest.mark.parametrize("on_conflict", ["reject", "ignore", "replace", "replace_except_schedule"])
    def test_are_neither_told_nor_replaced_by_a_unique_one(self, server, tenants, on_conflict):
        tenants("ada")
        job = server.enqueue(queue="ada", args=["her secret"], unique=UNIQUE)

        tenants("eve")
        unique = {**UNIQUE, "on_conflict": on_conflict}
        body = {"type": "email.send", "args": [], "options": {"queue": "eve", "unique": unique}}
        said = server.post("v1/jobs", body, 409)
        assert "secret" not in str(said)
        assert job["id"] not in str(said)

        tenants("ada")
        assert server.job(job["id"])["state"] == "available"

    def test_are_not_kept_by_a_heartbeat(self, server, tenants):
        tenants("ada")
        job = server.enqueue(queue="ada")
        server.fetch("ada", worker_id="w")
        before = ScheduledTask.objects.get(pk=job["id"]).lease_expires_at

        tenants("eve")
        said = server.post("v1/workers/heartbeat", {"worker_id": "w", "active_jobs": [job["id"]]})
        assert said["jobs_extended"] == []
        assert ScheduledTask.objects.get(pk=job["id"]).lease_expires_at == before


class TestHolds:
    @pytest.mark.parametrize(
        ("scope", "target"),
        [("everything", ""), ("timeline", "ojs"), ("task", "ojs.email__send"), ("queue", "default")],
    )
    def test_keep_jobs_from_workers_outside(self, server, scope, target):
        job = server.enqueue()
        hold = Hold.objects.create(scope=Scope(scope), target=target, reason="Stop.", created_at=NOW)
        assert server.fetch() == []

        hold.delete()
        assert [each["id"] for each in server.fetch()] == [job["id"]]

    def test_leave_others_alone(self, server):
        jobs = [server.enqueue(queue="mail"), server.enqueue(type="report.make")]
        for scope, target in (("queue", "default2"), ("task", "ojs.email__send2"), ("timeline", "trial")):
            Hold.objects.create(scope=Scope(scope), target=target, reason="Stop.", created_at=NOW)
        assert [each["id"] for each in server.fetch("mail", "default", count=9)] == [job["id"] for job in jobs]


class TestQueuesOfOthers:
    @pytest.mark.parametrize("queue", ["eve", "default"])
    def test_take_no_jobs(self, server, tenants, queue):
        tenants("ada")
        job = {"type": "a", "args": [], "options": {"queue": queue}}

        server.post("v1/jobs", job, 403)
        server.post("v1/jobs/batch", {"jobs": [{"type": "a", "args": [], "options": {"queue": "ada"}}, job]}, 403)
        server.post("v1/cron", {"name": "n", "expression": "* * * * *", **job}, 403)
        for body in (
            {"type": "chain", "steps": [{"type": "a", "args": [], "options": {"queue": "ada"}}, job]},
            {
                "type": "batch",
                "jobs": [{"type": "a", "args": []}],
                "options": {"queue": "ada"},
                "callbacks": {"on_success": job},
            },
        ):
            server.post("v1/workflows", body, 403)
        assert not ScheduledTask.objects.exists()

    def test_take_jobs_where_the_policy_says_so(self, server, tenants):
        tenants("ada")

        server.enqueue(queue="ada")
        server.enqueue(queue="all")


class TestWorkflowsOfOthers:
    def test_are_not_found(self, server, tenants):
        tenants("ada")
        job = {"type": "a", "args": [], "options": {"queue": "ada"}}
        address = (
            f"v1/workflows/{server.post('v1/workflows', {'type': 'chain', 'steps': [job]}, 201)['workflow']['id']}"
        )

        tenants("eve")
        server.get(address, status=404)
        server.delete(address, status=404)

        tenants("ada")
        assert server.get(address)["workflow"]["state"] == "running"

    def test_are_not_found_either_once_their_jobs_were_pruned(self, server, tenants):
        tenants("ada")
        job = {"type": "a", "args": [], "options": {"queue": "ada"}}
        made = server.post("v1/workflows", {"type": "chain", "steps": [job, job], "name": "secret"}, 201)["workflow"]
        LogEntry.objects.all().delete()
        ScheduledTask.objects.all().delete()

        tenants("eve")
        server.get(f"v1/workflows/{made['id']}", status=404)
        server.delete(f"v1/workflows/{made['id']}", status=404)
