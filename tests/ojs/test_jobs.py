"""Jobs that are made, read, and called off."""

from __future__ import annotations

import json
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.rows import NOW, make_task
from timeline.checks.declared import check_rows
from timeline.clocks import story_time
from timeline.dispatch.claim import claim
from timeline.features.plans.differ import rows_of_nobody
from timeline.models import LogEntry, ScheduledTask
from timeline.ojs.kinds import key_of
from timeline.reading.diagnosis import undefined_among
from timeline.registry import registry
from timeline.shortcuts import explain
from timeline.timing import LATEST

ID = "019539a4-aaaa-7000-8000-111111111111"


class TestEnqueue:
    def test_makes_a_row_without_an_entity_by_a_kind_of_its_own(self, server):
        job = server.enqueue(
            type="report.make_pdf", args=[1, {"a": None}], meta={"tenant": "acme"}, queue="reports", priority=5
        )

        task = ScheduledTask.objects.get()
        assert (task.task_key, task.queue, task.priority, task.entity_id) == ("ojs.report__make_pdf", "reports", -5, "")
        assert (str(task.pk), task.occurrence) == (job["id"], job["id"])
        assert UUID(job["id"]).version == 7
        assert job == {
            "specversion": "1.0",
            "id": job["id"],
            "type": "report.make_pdf",
            "queue": "reports",
            "state": "available",
            "args": [1, {"a": None}],
            "meta": {"tenant": "acme"},
            "priority": 5,
            "attempt": 0,
            "max_attempts": 3,
            "created_at": "2026-03-01T09:00:00Z",
            "enqueued_at": "2026-03-01T09:00:00Z",
        }
        assert server.answer["Location"] == f"/ojs/v1/jobs/{job['id']}"
        assert server.job(job["id"]) == job

    def test_keeps_what_it_does_not_know_and_not_what_is_its_own(self, server):
        body = {"type": "a.b", "args": [], "x_mine": {"deep": [1]}, "state": "completed", "attempt": 9, "error": {}}

        job = server.post("v1/jobs", {**body, "options": {"x_color": "red", "tags": ["t"]}}, 201)["job"]

        assert (job["x_mine"], job["options"], job["tags"]) == ({"deep": [1]}, {"x_color": "red"}, ["t"])
        assert (job["state"], job["attempt"], "error" in job) == ("available", 0, False)

    def test_takes_an_id_once(self, server):
        assert server.enqueue(id=ID)["id"] == ID

        error = server.post("v1/jobs", {"type": "a", "args": [], "id": ID}, 409)["error"]

        assert (error["code"], error["retryable"], error["details"]["existing_job_id"]) == ("duplicate", False, ID)
        assert ScheduledTask.objects.count() == 1

    def test_takes_no_id_of_another_row(self, server):
        make_task(id=ID)

        server.enqueue(409, id=ID)

    def test_takes_options_beside_the_type_as_the_core_has_them(self, server):
        body = {"type": "a", "args": [], "queue": "mail", "priority": 7, "retry": {"max_attempts": 9}, "timeout": 60}

        job = server.post("v1/jobs", body, 201)["job"]

        assert (job["queue"], job["priority"], job["max_attempts"], job["timeout"]) == ("mail", 7, 9, 60)

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({"args": []}, "type"),
            ({"type": "Email", "args": []}, "type"),
            ({"type": "a\n", "args": []}, "type"),
            ({"type": "a"}, "args"),
            ({"type": "a", "args": {}}, "args"),
            ({"type": "a", "args": None}, "args"),
            ({"type": "a", "args": ["\x00"]}, "args, meta or options"),
            ({"type": "a", "args": [{"password": "x"}]}, "args, meta or options"),
            ({"type": "a", "args": ["x" * 70_000]}, "args, meta or options"),
            ({"type": "a", "args": [], "id": str(uuid4())}, "id"),
            ({"type": "a", "args": [], "id": ID.upper()}, "id"),
            ({"type": "a", "args": [], "id": None}, "id"),
            ({"type": "a", "args": [], "meta": []}, "meta"),
            ({"type": "a", "args": [], "options": []}, "options"),
            ({"type": "a", "args": [], "options": {"queue": "My"}}, "options.queue"),
            ({"type": "a", "args": [], "options": {"queue": "q" * 51}}, "options.queue"),
            ({"type": "a", "args": [], "options": {"priority": 101}}, "options.priority"),
            ({"type": "a", "args": [], "options": {"priority": True}}, "options.priority"),
            ({"type": "a", "args": [], "options": {"scheduled_at": "tomorrow"}}, "options.scheduled_at"),
            ({"type": "a", "args": [], "options": {"delay_until": "2026-02-30T00:00:00Z"}}, "options.delay_until"),
            ({"type": "a", "args": [], "options": {"expires_at": "9999-01-01T00:00:00Z"}}, "options.expires_at"),
            ({"type": "a", "args": [], "options": {"scheduled_at": "+P400D"}}, "options.scheduled_at"),
            ({"type": "a", "args": [], "options": {"timeout_ms": -1}}, "options.timeout_ms"),
            ({"type": "a", "args": [], "options": {"tags": [1]}}, "options.tags[0]"),
            ({"type": "a", "args": [], "options": {"pending": "no"}}, "options.pending"),
            (
                {"type": "a", "args": [], "options": {"retry": {"initial_interval": "1s"}}},
                "options.retry.initial_interval",
            ),
        ],
    )
    def test_names_the_field_that_is_wrong(self, server, body, field):
        error = server.post("v1/jobs", body, 400)["error"]

        assert (error["code"], error["retryable"], error["details"]["field"]) == ("invalid_request", False, field)
        assert error["message"].startswith(field)
        assert error["hint"]
        assert error["docs_url"]
        assert error["request_id"] == server.answer["X-Request-Id"]
        assert not ScheduledTask.objects.exists()

    @pytest.mark.parametrize(
        ("retry", "field"),
        [
            ({"max_attempts": -1}, "options.retry.max_attempts"),
            ({"backoff_coefficient": 0.5}, "options.retry.backoff_coefficient"),
            ({"on_exhaustion": "explode"}, "options.retry.on_exhaustion"),
        ],
    )
    def test_cannot_do_what_no_policy_says(self, server, retry, field):
        error = server.post("v1/jobs", {"type": "a", "args": [], "options": {"retry": retry}}, 422)["error"]

        assert (error["type"], error["details"]["field"]) == ("validation_error", field)

    @pytest.mark.parametrize("body", ["{ no json }", "[]", '{"type": NaN}', '"\\ud800', "[" * 100_000])
    def test_reads_no_body_that_is_no_object(self, server, body):
        assert server.post("v1/jobs", body, 400)["error"]["code"] == "invalid_payload"

    def test_wants_a_content_type_that_no_form_has(self, server):
        server.post("v1/jobs", {"type": "a", "args": []}, 400, kind="text/plain")
        server.post("v1/jobs", {"type": "a", "args": []}, 201, kind="application/json; charset=utf-8")

    def test_writes_two_statements_however_many_jobs_there_are(self, server):
        def statements(number):
            with CaptureQueriesContext(
                connection,
            ) as found:
                server.post("v1/jobs/batch", {"jobs": [{"type": "a", "args": [each]} for each in range(number)]}, 201)
            return len(found)

        assert statements(2) == statements(200)
        assert ScheduledTask.objects.count() == 202


class TestBatch:
    def test_makes_all_in_order(self, server):
        made = server.post("v1/jobs/batch", {"jobs": [{"type": "a", "args": [each]} for each in range(5)]}, 201)

        assert (made["count"], [job["args"] for job in made["jobs"]]) == (5, [[each] for each in range(5)])
        assert [job["args"] for job in server.fetch(count=9)] == [[each] for each in range(5)]

    @pytest.mark.parametrize("wrong", [{"args": []}, {"type": "a", "args": [], "id": ID}, 3])
    def test_makes_none_if_one_is_wrong(self, server, wrong):
        server.enqueue(id=ID, queue="other")
        status = 409 if isinstance(wrong, dict) and "id" in wrong else 400

        server.post("v1/jobs/batch", {"jobs": [{"type": "a", "args": []}, wrong]}, status)

        assert ScheduledTask.objects.count() == 1
        assert LogEntry.objects.count() == 1

    def test_names_the_job_that_is_wrong(self, server):
        error = server.post("v1/jobs/batch", {"jobs": [{"type": "a", "args": []}, {"args": []}]}, 400)["error"]

        assert error["details"]["field"] == "jobs[1].type"


class TestTimes:
    def test_are_kept_and_told(self, server):
        job = server.enqueue(scheduled_at="2026-03-01T11:00:00+01:00", expires_at="2099-12-31T23:59:59Z")

        assert (job["state"], job["scheduled_at"]) == ("scheduled", "2026-03-01T10:00:00Z")
        assert job["expires_at"] == "2099-12-31T23:59:59Z"
        assert server.fetch() == []

        server.later(hours=1)
        assert server.job(job["id"])["state"] == "available"
        assert [each["id"] for each in server.fetch()] == [job["id"]]

    def test_that_are_past_put_no_job_before_those_that_came_earlier(self, server):
        first = server.enqueue()
        server.later(seconds=1)
        second = server.enqueue(delay_until="2020-01-01T00:00:00Z")

        assert second["state"] == "available"
        assert [job["id"] for job in server.fetch(count=2)] == [first["id"], second["id"]]

    def test_may_be_relative(self, server):
        assert server.enqueue(scheduled_at="+PT90S")["scheduled_at"] == "2026-03-01T09:01:30Z"

    def test_that_are_over_let_a_job_expire(self, server):
        job = server.enqueue(expires_at="+PT2S")
        server.later(seconds=3)

        assert server.job(job["id"])["state"] == "discarded"
        assert server.fetch() == []
        found = server.job(job["id"])
        assert (found["state"], "completed_at" in found) == ("discarded", False)
        task = ScheduledTask.objects.get()
        assert (task.state, task.reason_code) == ("cancelled", "expired")
        server.delete(f"v1/jobs/{job['id']}", status=409)

    def test_of_jobs_that_have_begun_do_not_run_out(self, server):
        job = server.enqueue(expires_at="+PT2S")
        server.fetch()
        server.later(seconds=3)

        assert server.ack(job["id"])["state"] == "completed"


class TestPending:
    def test_waits_until_it_is_activated(self, server):
        job = server.enqueue(pending=True)
        assert job["state"] == "pending"
        assert server.fetch() == []

        answer = server.post(f"v1/jobs/{job['id']}/activate")["job"]

        assert (answer["state"], answer["previous_state"]) == ("available", "pending")
        error = server.post(f"v1/jobs/{job['id']}/activate", status=409)["error"]
        assert error["details"]["current_state"] == "available"
        assert server.fetch()[0]["id"] == job["id"]

    def test_may_be_cancelled(self, server):
        job = server.enqueue(pending=True)

        assert server.delete(f"v1/jobs/{job['id']}")["job"]["state"] == "cancelled"

    def test_lies_further_ahead_than_any_time_that_is_given(self, server):
        assert server.enqueue(pending=True)["state"] == "pending"
        assert ScheduledTask.objects.get().scheduled_at < LATEST


class TestCancel:
    def test_ends_a_job_that_waits(self, server):
        job = server.enqueue()

        cancelled = server.delete(f"v1/jobs/{job['id']}")["job"]

        assert (cancelled["state"], cancelled["previous_state"]) == ("cancelled", "available")
        assert cancelled["cancelled_at"] == "2026-03-01T09:00:00Z"
        assert "completed_at" not in cancelled
        assert server.fetch() == []
        error = server.delete(f"v1/jobs/{job['id']}", status=409)["error"]
        assert (error["code"], error["details"]["current_state"]) == ("conflict", "cancelled")

    def test_ends_a_job_that_runs_and_its_worker_learns_it(self, server):
        job = server.enqueue()
        server.fetch(worker_id="w")

        server.delete(f"v1/jobs/{job['id']}")

        beat = server.post("v1/workers/heartbeat", {"worker_id": "w", "active_jobs": [job["id"]]})
        assert (beat["jobs_extended"], beat["jobs_lost"]) == ([], [job["id"]])
        server.ack(job["id"], 409)

    def test_finds_no_job_of_an_id_that_is_none_or_of_another_row(self, server):
        make_task(id=ID)

        for method in (server.get, server.delete):
            assert method(f"v1/jobs/{ID}", status=404)["error"]["code"] == "not_found"
            method("v1/jobs/nothing", status=400)


class TestKinds:
    def test_are_taken_by_no_worker_of_ours(self, server):
        server.enqueue()
        server.enqueue(scheduled_at="+PT1S")
        server.later(minutes=1)
        server.poll()

        assert claim(now=server.now, using="default") == []
        assert [job["state"] for job in server.fetch(count=9)] == ["active", "active"]

    def test_do_not_count_as_left_behind(self, server):
        job = server.enqueue()

        assert check_rows(None, databases=["default"]) == []
        assert rows_of_nobody(using="default") == {}
        assert undefined_among(["ojs.email__send"], "default") == []
        assert "workers outside" in str(explain(ScheduledTask.objects.get(pk=job["id"])))

    def test_say_whose_worker_is_missing(self, server):
        job = server.enqueue(queue="mail")
        server.later(hours=1)

        with story_time(lambda: server.now):
            told = str(explain(ScheduledTask.objects.get(pk=job["id"])))

        assert "It is overdue: does a worker outside fetch from its queue, mail?" in told
        assert "definition" not in told

    @pytest.mark.parametrize(
        ("job_type", "title"),
        [("email.send", "email.send"), ("a_b.c", "a_b.c"), ("E-Mail", "")],
    )
    def test_are_called_as_their_types(self, server, job_type, title):
        assert registry.told(key_of(job_type)) == (title, "")

    @pytest.mark.parametrize(
        ("name", "key"),
        [("email.send", "ojs.email__send"), ("a", "ojs.a"), ("a_b.c1", "ojs.a_b__c1")],
    )
    def test_have_keys_made_of_their_names(self, name, key):
        assert key_of(name) == key

    def test_are_told_apart_where_names_are_alike_or_long(self):
        names = ["a.b", "a__b", "a-b", "a_b", "x" * 200, "x" * 201, "a.b.", "a_.b"]

        assert len({key_of(name) for name in names}) == len(names)
        assert all(len(key_of(name)) <= 54 for name in names)


class TestServer:
    def test_tells_what_there_is(self, server):
        manifest = server.get("manifest")

        assert (manifest["specversion"], manifest["ojs_version"], manifest["conformance_level"]) == ("1.0", "1.0", 3)
        assert manifest["protocols"] == ["http"]
        assert manifest["capabilities"]["workflows"] is True
        assert server.get("v1/health")["status"] == "ok"
        assert server.client.head("/ojs/v1/health").status_code == 200

    def test_gives_back_the_id_of_a_request_and_makes_one(self, server):
        server.get("v1/health", **{"X-Request-Id": "req_mine"})
        assert server.answer["X-Request-Id"] == "req_mine"

        server.get("v1/health", **{"X-Request-Id": "a b"})
        assert server.answer["X-Request-Id"].startswith("req_0")

    def test_serves_one_version(self, server):
        assert server.get("v1/health", status=422, **{"OJS-Version": "2.0"})["error"]["code"] == "unsupported"

    def test_answers_in_the_same_way_where_there_is_nothing(self, server):
        assert server.get("v1/nothing", status=404)["error"]["code"] == "not_found"
        server.get("v1/jobs", status=405)
        assert server.answer["Allow"] == "POST"

    def test_sends_letters_of_all_kinds(self, server):
        job = server.enqueue(args=["ä", "\U0001f600", 1.5, 10**30])

        assert server.job(job["id"])["args"] == ["ä", "\U0001f600", 1.5, 10**30]
        assert json.loads(server.answer.content)

    def test_has_story_time(self, server):
        assert server.enqueue()["created_at"] == (NOW + timedelta(0)).isoformat().replace("+00:00", "Z")
