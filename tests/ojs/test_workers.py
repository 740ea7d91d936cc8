"""What workers outside ask for: jobs, more time, and that outcomes are recorded."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.rows import make_task
from timeline.clocks import MachineTime
from timeline.dispatch.rescue import rescue
from timeline.models import LogEntry, ScheduledTask
from timeline.shortcuts import redrive

QUICK = {"initial_interval": "PT1S", "backoff_coefficient": 2.0, "jitter": False}


def lose(**which):
    """Let leases run out."""
    ScheduledTask.objects.filter(state="active", **which).update(lease_expires_at=MachineTime(timedelta(seconds=-1)))


class TestFetch:
    def test_takes_the_most_urgent_first_and_then_the_oldest(self, server):
        for number, priority in enumerate([0, -10, 10, 0]):
            server.enqueue(args=[number], priority=priority)

        assert [job["args"][0] for job in server.fetch(count=3)] == [2, 0, 3]
        assert [job["args"][0] for job in server.fetch()] == [1]
        assert server.fetch() == []

    def test_looks_through_queues_in_their_order(self, server):
        for queue in ("low", "high", "other"):
            server.enqueue(queue=queue)

        assert [job["queue"] for job in server.fetch("high", "low", count=9)] == ["high", "low"]

    def test_tells_who_has_a_job_and_since_when(self, server):
        job = server.enqueue()
        server.later(seconds=5)

        [taken] = server.fetch(worker_id="w1")

        assert (taken["id"], taken["state"], taken["attempt"]) == (job["id"], "active", 1)
        assert taken["started_at"] == "2026-03-01T09:00:05Z"
        assert ScheduledTask.objects.get().worker == "w1"

    def test_takes_only_jobs(self, server):
        make_task(state="available", queue="default")

        assert server.fetch() == []

    def test_asks_as_often_for_two_jobs_as_for_a_hundred(self, server):
        server.post("v1/jobs/batch", {"jobs": [{"type": "a", "args": [each]} for each in range(110)]}, 201)

        def statements(count):
            with CaptureQueriesContext(connection) as found:
                assert len(server.fetch(count=count)) == count
            return len(found)

        assert statements(2) == statements(100)

    def test_has_a_lease_as_the_worker_says_or_the_job_or_the_settings(self, server, settings):
        settings.TIMELINE_OJS = {"ANYBODY": True, "LEASE": timedelta(minutes=7)}
        for options in ({}, {"visibility_timeout_ms": 90_000}, {"visibility_timeout": 120}, {"timeout_ms": 5000}):
            server.enqueue(**options)
        server.enqueue()
        taken = server.fetch(count=4) + server.fetch(visibility_timeout_ms=1000)

        lengths = []
        for job in taken:
            left = MachineTime()
            task = ScheduledTask.objects.annotate(at=left).get(occurrence=job["id"])
            lengths.append(round((task.lease_expires_at - task.at).total_seconds(), -1 if len(lengths) < 3 else 0))
        assert lengths == [420, 90, 120, 5, 1]

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({}, "queues"),
            ({"queues": []}, "queues"),
            ({"queues": "default"}, "queues"),
            ({"queues": ["A"]}, "queues[0]"),
            ({"queues": ["a"], "count": 0}, "count"),
            ({"queues": ["a"], "count": "3"}, "count"),
            ({"queues": ["a"], "worker_id": 3}, "worker_id"),
            ({"queues": ["a"], "visibility_timeout_ms": 0}, "visibility_timeout_ms"),
        ],
    )
    def test_names_what_is_wrong(self, server, body, field):
        assert server.post("v1/workers/fetch", body, 400)["error"]["details"]["field"] == field


class TestAck:
    def test_keeps_the_result(self, server):
        job = server.enqueue()
        server.fetch(worker_id="w")

        answer = server.ack(job["id"], worker_id="w", result={"sent": 3})

        assert (answer["acknowledged"], answer["id"], answer["state"]) == (True, job["id"], "completed")
        assert answer["completed_at"] == "2026-03-01T09:00:00Z"
        assert server.job(job["id"])["result"] == {"sent": 3}

    @pytest.mark.parametrize("body", [{"worker_id": "other"}, {"attempt": 2}])
    def test_is_refused_of_another_worker_or_attempt(self, server, body):
        job = server.enqueue()
        server.fetch(worker_id="w")

        assert server.ack(job["id"], 409, **body)["error"]["code"] == "conflict"
        assert server.job(job["id"])["state"] == "active"
        server.ack(job["id"], worker_id="w", attempt=1)

    def test_is_refused_unless_the_job_is_active(self, server):
        job = server.enqueue()
        server.ack(job["id"], 409)
        server.fetch()
        server.ack(job["id"])

        server.ack(job["id"], 409)
        server.nack(job["id"], 409)

        assert server.job(job["id"])["state"] == "completed"

    def test_is_refused_once_the_lease_has_passed_to_another(self, server):
        job = server.enqueue()
        server.fetch(worker_id="slow")
        lose()
        server.poll()
        assert server.fetch(worker_id="quick")[0]["attempt"] == 2

        server.ack(job["id"], 409, worker_id="slow")
        server.ack(job["id"], 409, attempt=1)

        server.ack(job["id"], worker_id="quick")

    def test_takes_no_result_that_a_row_cannot_hold(self, server):
        job = server.enqueue()
        server.fetch()

        assert server.ack(job["id"], 400, result="\x00")["error"]["details"]["field"] == "result"
        server.ack("01a00000-0000-7000-8000-000000000000", 404)


class TestNack:
    def test_lets_a_job_be_tried_again_by_its_policy(self, server):
        job = server.enqueue(retry={**QUICK, "max_attempts": 3})
        delays = []
        for attempt in (1, 2):
            assert server.fetch()[0]["attempt"] == attempt
            answer = server.nack(job["id"])
            assert (answer["state"], answer["attempt"], answer["max_attempts"]) == ("retryable", attempt, 3)
            delays.append(answer["retry_delay_ms"])
            assert server.fetch() == []
            server.later(seconds=2)

        taken = server.fetch()[0]
        last = server.nack(job["id"], error={"code": "handler_error", "message": "At last."})

        assert (delays, taken["retry_delay_ms"]) == ([1000, 2000], 2000)
        assert (last["state"], last["discarded_at"], last["completed_at"]) == (
            "discarded",
            *2 * ["2026-03-01T09:00:04Z"],
        )
        found = server.job(job["id"])
        assert [error["attempt"] for error in found["errors"]] == [1, 2, 3]
        assert (found["error"]["message"], found["error"]["type"]) == ("At last.", "handler_error")

    @pytest.mark.parametrize(
        ("error", "state"),
        [
            ({"code": "e", "message": "m", "retryable": False}, "discarded"),
            ({"code": "Fatal", "message": "m"}, "discarded"),
            ({"type": "Auth.Expired", "message": "m"}, "discarded"),
            ({"code": "e", "message": "m", "details": {"error_class": "Auth.No"}}, "discarded"),
            ({"code": "Authentic", "message": "m"}, "retryable"),
        ],
    )
    def test_gives_a_job_up_that_fails_for_good(self, server, error, state):
        job = server.enqueue(retry={"non_retryable_errors": ["Fatal", "Auth.*"]})
        server.fetch()

        assert server.nack(job["id"], error=error)["state"] == state

    def test_tries_no_job_again_that_may_be_tried_never(self, server):
        job = server.enqueue(retry={"max_attempts": 0})
        server.fetch()

        assert server.nack(job["id"])["state"] == "discarded"

    def test_gives_a_job_back_without_a_failure(self, server):
        job = server.enqueue(retry={"max_attempts": 1})
        server.fetch(worker_id="w")

        assert server.nack(job["id"], worker_id="w", requeue=True)["state"] == "available"

        assert server.fetch(worker_id="v")[0]["id"] == job["id"]
        assert ScheduledTask.objects.get().failures == 0

    def test_keeps_what_the_worker_says_until_the_job_succeeds(self, server):
        job = server.enqueue()
        server.fetch()
        error = {"code": "handler_error", "message": "No.", "details": {"host": "db", "stack_trace": "a\nb"}}
        server.nack(job["id"], error=error)

        told = server.job(job["id"])["error"]
        assert {name: told[name] for name in error} == error
        assert told["occurred_at"] == "2026-03-01T09:00:00Z"
        assert LogEntry.objects.get(to_state="retryable").detail["error"]["traceback"] == "a\nb"

        server.later(minutes=10)
        server.fetch()
        server.ack(job["id"])
        found = server.job(job["id"])
        assert ("error" in found, len(found["errors"])) == (False, 1)

    @pytest.mark.parametrize(
        ("error", "field"),
        [
            ("broken", "error"),
            ({"message": "m"}, "error.code"),
            ({"code": "c"}, "error.message"),
            ({"code": 3, "message": "m"}, "error.code"),
            ({"code": "c", "message": "m", "retryable": "no"}, "error.retryable"),
            ({"code": "c", "message": "m", "details": "\x00"}, "error"),
        ],
    )
    def test_names_what_is_wrong(self, server, error, field):
        job = server.enqueue()
        server.fetch()

        assert server.nack(job["id"], 400, error=error)["error"]["details"]["field"] == field


class TestLostLease:
    def test_makes_a_job_available_again_and_counts_as_a_failure(self, server):
        job = server.enqueue(retry={"max_attempts": 2})
        server.fetch(worker_id="w")
        lose()

        server.poll()

        found = server.job(job["id"])
        assert (found["state"], found["error"]["code"], found["attempt"]) == ("available", "visibility_timeout", 1)
        assert "started_at" not in found
        server.fetch()
        lose()
        server.poll()
        assert server.job(job["id"])["state"] == "discarded"

    def test_is_seen_at_once_even_before_the_row_is_staged(self, server):
        job = server.enqueue()
        server.fetch()
        lose()

        rescue(now=server.now, using="default")

        assert server.job(job["id"])["state"] == "available"
        assert server.fetch()[0]["attempt"] == 2

    def test_waits_for_no_poller(self, server):
        """Whoever reads the job sees it, and whoever fetches next has it."""
        first, second = server.enqueue()["id"], server.enqueue(queue="q")["id"]
        server.fetch()
        server.fetch("q")
        assert server.job(first)["state"] == "active"
        lose()

        assert server.job(first)["state"] == "available"
        [taken] = server.fetch("q")
        assert (taken["id"], taken["attempt"], taken["errors"][0]["code"]) == (second, 2, "visibility_timeout")

    def test_after_the_time_of_an_attempt_is_a_timeout(self, server):
        job = server.enqueue(timeout_ms=2000, retry=QUICK)
        server.fetch()
        server.later(seconds=3)
        lose()

        server.poll()

        found = server.job(job["id"])
        assert (found["state"], found["error"]["code"]) == ("retryable", "timeout")
        assert ScheduledTask.objects.get().reason_code == "timeout"

    def test_of_a_task_of_ours_goes_as_before(self, server):
        make_task(state="active", task_key="trial.remind", attempt=1, worker="w")
        lose()

        server.poll()

        task = ScheduledTask.objects.get()
        assert (task.state, task.failures, task.reason_code) == ("available", 0, "worker_lost")


class TestHeartbeat:
    def beat(self, server, *jobs, **body):
        return server.post("v1/workers/heartbeat", {"worker_id": "w", "active_jobs": [*jobs], **body})

    def test_makes_leases_longer_of_a_workers_own_jobs(self, server):
        mine, others, ended = (server.enqueue(visibility_timeout_ms=1000)["id"] for _each in range(3))
        for worker in ("w", "v", "w"):
            server.fetch(worker_id=worker)
        server.ack(ended)
        lose(worker="w")

        answer = self.beat(server, mine, others, ended, visibility_timeout_ms=60_000)
        server.poll()

        assert (answer["state"], answer["jobs_extended"], answer["jobs_lost"]) == ("running", [mine], [others, ended])
        assert server.job(mine)["state"] == "active"

    def test_makes_none_longer_than_an_attempt_may_take(self, server):
        job = server.enqueue(timeout_ms=10_000)["id"]
        server.fetch(worker_id="w")
        server.later(seconds=8)
        assert self.beat(server, job)["jobs_extended"] == [job]
        task = ScheduledTask.objects.annotate(at=MachineTime()).get()
        assert task.lease_expires_at - task.at < timedelta(seconds=2.1)

        server.later(seconds=3)

        assert self.beat(server, job)["jobs_lost"] == [job]

    def test_takes_one_update_for_many_jobs(self, server):
        def statements(count):
            server.post("v1/jobs/batch", {"jobs": [{"type": "a", "args": []}] * count}, 201)
            jobs = [job["id"] for job in server.fetch(worker_id="w", count=count)]
            with CaptureQueriesContext(connection) as found:
                assert len(self.beat(server, *jobs)["jobs_extended"]) == count
            return len(found)

        assert statements(2) == statements(50)

    def test_says_what_a_job_says_where_tests_want_that(self, server, settings):
        job = server.enqueue(metadata={"test_directive": "quiet"})["id"]
        server.fetch(worker_id="w")
        assert self.beat(server, job)["state"] == "running"

        settings.TIMELINE_OJS = {"ANYBODY": True, "TEST_DIRECTIVES": True}

        assert self.beat(server, job)["state"] == "quiet"

    def test_names_what_is_wrong(self, server):
        for body, field in (({}, "worker_id"), ({"worker_id": "w", "active_jobs": ["x"]}, "active_jobs[0]")):
            assert server.post("v1/workers/heartbeat", body, 400)["error"]["details"]["field"] == field


class TestDeadLetters:
    @pytest.fixture
    def dead(self, server):
        """A job that was given up, and that its policy keeps; beside it one that is not kept."""
        kept = server.enqueue(queue="mail", retry={"max_attempts": 1, "on_exhaustion": "dead_letter"})["id"]
        gone = server.enqueue(queue="mail", retry={"max_attempts": 1})["id"]
        for job in (kept, gone):
            server.fetch("mail")
            server.nack(job)
        return kept

    def test_are_listed(self, server, dead):
        answer = server.get("v1/dead-letter")

        assert [job["id"] for job in answer["jobs"]] == [dead]
        assert answer["pagination"] == {"total": 1, "limit": 50, "offset": 0, "has_more": False}
        assert server.get("v1/dead-letter?queue=other")["jobs"] == []

    def test_are_listed_in_parts(self, server):
        ids = [server.enqueue(retry={"max_attempts": 1, "on_exhaustion": "dead_letter"})["id"] for _each in range(5)]
        for job in ids:
            server.fetch()
            server.nack(job)
            server.later(seconds=1)
        seen, cursor = [], ""
        while True:
            answer = server.get(f"v1/dead-letter?limit=2{cursor}")
            seen += [job["id"] for job in answer["jobs"]]
            if not answer["pagination"]["has_more"]:
                break
            cursor = f"&cursor={answer['pagination']['next_cursor']}"

        assert seen == ids[::-1]
        for wrong in ("limit=0", "limit=x", "offset=-1", "cursor=AAAA", "queue=A"):
            server.get(f"v1/dead-letter?{wrong}", status=400)

    def test_may_be_retried_under_their_id_with_a_fresh_budget(self, server, dead):
        again = server.post(f"v1/dead-letter/{dead}/retry")["job"]

        assert (again["id"], again["state"], again["attempt"]) == (dead, "available", 0)
        assert [task.revision for task in ScheduledTask.objects.filter(occurrence=dead).order_by("revision")] == [1, 2]
        assert server.get("v1/dead-letter")["jobs"] == []
        server.post(f"v1/dead-letter/{dead}/retry", status=404)
        server.later(seconds=1)
        taken = server.fetch("mail")[0]
        assert (taken["id"], taken["attempt"], len(taken["errors"])) == (dead, 1, 1)
        assert taken["created_at"] == "2026-03-01T09:00:00Z"
        server.ack(dead)
        assert server.job(dead)["state"] == "completed"

    def test_may_be_retried_by_the_product_too(self, server, dead):
        redrive([ScheduledTask.objects.get(occurrence=dead)], reason="try again")

        assert server.job(dead)["state"] == "available"
        assert server.job(dead)["max_attempts"] == 1

    def test_may_be_put_away(self, server, dead):
        assert server.delete(f"v1/dead-letter/{dead}") == {"deleted": True, "job_id": dead}

        assert server.get("v1/dead-letter")["jobs"] == []
        server.delete(f"v1/dead-letter/{dead}", status=404)
        assert server.job(dead)["state"] == "discarded"


def test_what_has_expired_among_others_lets_each_of_them_be_taken_once(server):
    jobs = [server.enqueue(), server.enqueue(expires_at="+PT1S"), server.enqueue()]
    server.later(seconds=2)
    assert [job["id"] for job in server.fetch(count=9)] == [jobs[0]["id"], jobs[2]["id"]]
    assert server.fetch() == []
    again = server.enqueue(expires_at="+PT1S")
    server.later(seconds=2)
    last = [server.enqueue()["id"] for _each in range(3)]
    assert [job["id"] for job in server.fetch(count=3)] == last
    assert server.job(again["id"])["state"] == "discarded"


def test_a_lost_job_whose_row_cannot_be_read_holds_up_no_other(server, caplog):
    broken, other = server.enqueue()["id"], server.enqueue()["id"]
    server.fetch(count=2)
    ScheduledTask.objects.filter(pk=broken).update(payload={"type": "email.send", "options": {"retry": 5}})
    lose(pk=broken)
    third = server.enqueue()["id"]
    assert [job["id"] for job in server.fetch(count=2)] == [third]
    lose()

    assert {str(task.pk) for task in rescue(now=server.now, using="default").retried} == {broken, other, third}
    assert "ojs.email__send" in caplog.text
