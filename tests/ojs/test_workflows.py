"""Workflows: chains, groups and batches with callbacks."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from timeline.models import ScheduledTask
from timeline.ojs.models import Workflow, WorkflowJob
from timeline.signals import pruning


def job(name="a", **options):
    """What a job is made of."""
    return {"type": name, "args": [name], "options": options}


ONCE = {"retry": {"max_attempts": 1}}


class Flow:
    """A workflow that a test makes, and what happens to its jobs."""

    def __init__(self, server, **body):
        self.server = server
        self.made = server.post("v1/workflows", body, 201)["workflow"]

    def now(self):
        """It as it is now."""
        return self.server.get(f"v1/workflows/{self.made['id']}")["workflow"]

    def types(self, count=100):
        """Take jobs; give their types."""
        self.taken = self.server.fetch(count=count)
        return [each["type"] for each in self.taken]

    def ack(self, result=None, place=0):
        """Say that a job that was taken last has succeeded."""
        return self.server.ack(self.taken[place]["id"], result=result)

    def nack(self, place=0):
        """Say that one has failed."""
        return self.server.nack(self.taken[place]["id"])


@pytest.fixture
def flow(server):
    """Make a workflow."""
    return lambda **body: Flow(server, **body)


class TestChain:
    def test_runs_its_steps_one_after_the_other(self, flow):
        chain = flow(type="chain", name="three", steps=[job("a"), job("b"), job("c")])
        assert (chain.made["state"], chain.made["steps_total"], chain.made["steps_completed"]) == ("running", 3, 0)
        assert [step["state"] for step in chain.made["steps"]] == ["pending", "waiting", "waiting"]

        for name in ("a", "b", "c"):
            assert chain.types() == [name]
            assert chain.types() == [] or pytest.fail("The next step was there before the one before it had ended.")
            chain.server.ack(chain.now()["steps"]["abc".index(name)]["job_id"])

        ended = chain.now()
        assert (ended["state"], ended["steps_completed"], ended["metadata"]["job_count"]) == ("completed", 3, 3)
        assert "completed_at" in ended

    def test_hands_all_results_on(self, flow):
        chain = flow(type="chain", steps=[job("a"), job("b"), job("c")])

        chain.types()
        assert chain.taken[0]["parent_results"] == []
        assert chain.taken[0]["workflow_id"] == chain.made["id"]
        chain.ack({"id": 7})
        chain.types()
        assert chain.taken[0]["parent_results"] == [{"id": 7}]
        chain.ack("two")
        chain.types()
        assert chain.taken[0]["parent_results"] == [{"id": 7}, "two"]

    def test_stops_if_a_step_has_expired_in_a_queue_that_nobody_fetches_from(self, flow):
        chain = flow(type="chain", steps=[job("a", expires_at="+PT1M"), job("b")])
        chain.server.post("v1/queues/default/pause")
        chain.server.later(minutes=2)

        assert chain.now()["state"] == "failed"

    def test_stops_at_a_step_that_failed_for_good(self, flow):
        chain = flow(type="chain", steps=[job("a"), job("b", **ONCE), job("c")])
        chain.types()
        chain.ack()
        chain.types()
        chain.nack()

        assert chain.types() == []
        ended = chain.now()
        assert (ended["state"], ended["steps_completed"], ended["failed_step_index"]) == ("failed", 1, 1)
        assert [step["state"] for step in ended["steps"]] == ["completed", "failed", "cancelled"]
        assert ended["failed_job_ids"] == [ended["steps"][1]["job_id"]]
        assert ended["errors"][0]["code"] == "handler_error"
        assert (ended["errors"][0]["attempt"], ended["errors"][0]["job_id"]) == (1, ended["steps"][1]["job_id"])

    def test_waits_for_a_step_that_is_tried_again(self, flow):
        chain = flow(type="chain", steps=[job("a", retry={"max_attempts": 2, "initial_interval_ms": 1000}), job("b")])
        chain.types()
        chain.nack()
        assert chain.now()["state"] == "running"

        chain.server.later(minutes=1)
        assert chain.types() == ["a"]
        chain.ack()
        assert chain.types() == ["b"]

    def test_stops_if_a_step_is_cancelled_by_itself(self, flow):
        chain = flow(type="chain", steps=[job("a"), job("b")])

        chain.server.delete(f"v1/jobs/{chain.made['steps'][0]['job_id']}")

        assert chain.types() == []
        assert chain.now()["state"] == "failed"

    def test_stops_if_a_step_has_expired(self, flow):
        chain = flow(type="chain", steps=[job("a", expires_at="+PT1M"), job("b")])
        chain.server.later(minutes=2)

        assert chain.types() == []
        assert chain.now()["state"] == "failed"

    def test_counts_a_delay_of_a_later_step_from_when_it_is_made(self, flow):
        chain = flow(type="chain", steps=[job("a"), job("b", delay_until="+PT1M")])
        chain.server.later(hours=1)
        chain.types()
        chain.ack()

        assert chain.types() == []
        chain.server.later(seconds=61)
        assert chain.types() == ["b"]

    def test_goes_on_if_its_worker_died_and_the_next_did_the_work(self, flow):
        chain = flow(type="chain", steps=[job("a", retry={"max_attempts": 2, "initial_interval_ms": 0}), job("b")])
        assert [each["type"] for each in chain.server.fetch(worker_id="dead")] == ["a"]
        chain.server.poll()
        chain.server.later(seconds=1)

        assert chain.types() == ["a"]
        chain.ack()
        assert chain.types() == ["b"]

    def test_fails_if_the_last_attempt_was_lost(self, flow):
        chain = flow(type="chain", steps=[job("a", **ONCE), job("b")])
        chain.server.fetch(worker_id="dead")

        chain.server.poll()

        assert (chain.now()["state"], chain.types()) == ("failed", [])

    def test_stays_failed_if_a_step_is_tried_again_by_hand(self, flow):
        retry = {"max_attempts": 1, "on_exhaustion": "dead_letter"}
        chain = flow(type="chain", steps=[job("a", retry=retry), job("b")])
        chain.types()
        chain.nack()
        chain.server.post(f"v1/dead-letter/{chain.taken[0]['id']}/retry")

        assert chain.types() == ["a"]
        chain.ack()
        assert (chain.types(), chain.now()["state"]) == ([], "failed")


class TestGroup:
    def test_lets_all_be_fetched_at_once(self, flow):
        group = flow(type="group", jobs=[job(name) for name in "abc"])
        assert (group.made["jobs_total"], group.made["jobs_completed"]) == (3, 0)

        assert group.types() == ["a", "b", "c"]
        assert [each["parent_results"] for each in group.taken] == [[], [], []]
        for place in (2, 0, 1):
            assert group.now()["state"] == "running"
            group.ack(place=place)

        assert (group.now()["state"], group.now()["jobs_completed"]) == ("completed", 3)

    def test_fails_when_all_have_ended_if_one_has_failed(self, flow):
        group = flow(type="group", jobs=[job("a", **ONCE), job("b")])
        group.types()
        group.nack()
        assert group.now()["state"] == "running"

        group.ack(place=1)

        ended = group.now()
        assert (ended["state"], ended["jobs_completed"], ended["metadata"]["failed_count"]) == ("failed", 1, 1)


class TestBatch:
    def batch(self, flow, *roles, **body):
        """A batch of two jobs with these callbacks."""
        callbacks = {role: job(f"cb.{role}", **ONCE) for role in roles}
        return flow(type="batch", jobs=[job("a"), job("b", **ONCE)], callbacks=callbacks, **body)

    ALL = ("on_complete", "on_success", "on_failure")

    @pytest.mark.parametrize(("fails", "called"), [(False, "on_success"), (True, "on_failure")])
    def test_calls_back_when_all_have_ended(self, flow, fails, called):
        batch = self.batch(flow, *self.ALL)
        batch.types()
        batch.ack({"n": 1})
        assert batch.server.fetch() == []
        batch.nack(1) if fails else batch.ack({"n": 2}, 1)

        assert sorted(batch.types()) == sorted(["cb.on_complete", f"cb.{called}"])
        assert [each["parent_results"] for each in batch.taken] == [[{"n": 1}, None if fails else {"n": 2}]] * 2
        assert batch.now()["state"] == "running"
        batch.ack()
        batch.ack(place=1)
        ended = batch.now()
        assert ended["state"] == "completed"
        assert ended["callbacks"][called]["state"] == "completed"
        assert batch.types() == []

    def test_fails_if_a_callback_fails(self, flow):
        batch = self.batch(flow, "on_complete")
        batch.types()
        batch.ack()
        batch.ack(place=1)
        batch.types()
        batch.nack()

        assert batch.now()["state"] == "failed"
        assert batch.now()["callbacks"]["on_complete"]["state"] == "failed"

    def test_fails_if_a_job_has_and_nobody_is_told(self, flow):
        batch = self.batch(flow, "on_success")
        batch.types()
        batch.ack()
        batch.nack(1)

        assert (batch.types(), batch.now()["state"]) == ([], "failed")

    def test_calls_back_once_if_its_last_jobs_end_together(self, flow, server):
        batch = flow(type="batch", jobs=[job("a", **ONCE), job("b", **ONCE)], callbacks={"on_complete": job("cb")})
        server.fetch(count=2, worker_id="dead")

        server.poll()

        assert batch.types() == ["cb"]
        assert WorkflowJob.objects.filter(role="on_complete").count() == 1


class TestCancelling:
    def test_cancels_what_nobody_has_taken_and_what_would_follow(self, flow):
        chain = flow(type="chain", steps=[job("a"), job("b"), job("c")])
        chain.types()
        chain.ack()

        told = chain.server.delete(f"v1/workflows/{chain.made['id']}")["workflow"]

        assert (told["state"], told["steps_cancelled"], told["steps_already_completed"]) == ("cancelled", 2, 1)
        assert [step["state"] for step in told["steps"]] == ["completed", "cancelled", "cancelled"]
        assert "cancelled_at" in told["metadata"]
        assert chain.types() == []
        assert chain.now()["state"] == "cancelled"

    def test_lets_one_that_runs_end_and_nothing_follows(self, flow):
        batch = flow(type="batch", jobs=[job("a"), job("b")], callbacks={"on_complete": job("cb")})
        batch.types(count=1)

        told = batch.server.delete(f"v1/workflows/{batch.made['id']}")["workflow"]
        assert sorted(part["state"] for part in told["jobs"]) == ["active", "cancelled"]
        assert batch.ack()["state"] == "completed"

        assert batch.types() == []
        ended = batch.now()
        assert (ended["state"], ended["jobs_completed"], ended["jobs_failed"]) == ("cancelled", 1, 0)

    @pytest.mark.parametrize("end", ["completed", "cancelled"])
    def test_is_refused_once_it_has_ended(self, flow, end):
        chain = flow(type="chain", steps=[job()])
        address = f"v1/workflows/{chain.made['id']}"
        if end == "completed":
            chain.types()
            chain.ack()
        else:
            chain.server.delete(address)

        error = chain.server.delete(address, status=409)["error"]
        assert (error["code"], error["details"]["current_state"]) == ("conflict", end)


class TestRefusal:
    @pytest.mark.parametrize(
        ("body", "path"),
        [
            ({}, "$.type"),
            ({"type": "dag", "steps": [job()]}, "$.type"),
            ({"type": ["chain"]}, "$.type"),
            ({"type": "chain"}, "$.steps"),
            ({"type": "chain", "steps": []}, "$.steps"),
            ({"type": "chain", "jobs": [job()]}, "$.steps"),
            ({"type": "chain", "steps": [job()] * 1001}, "$.steps"),
            ({"type": "chain", "steps": [3]}, "$.steps[0]"),
            ({"type": "chain", "steps": [job(), {"type": "a"}]}, "$.steps[1].args"),
            ({"type": "group", "jobs": [job("UPPER")]}, "$.jobs[0].type"),
            ({"type": "group", "jobs": [job(queue="!")]}, "$.jobs[0].options.queue"),
            ({"type": "group", "jobs": [job(unique={})]}, "$.jobs[0].options.unique"),
            ({"type": "group", "jobs": [{**job(), "id": "019414d4-dddd-7000-8000-000000000001"}]}, "$.jobs[0].id"),
            ({"type": "chain", "steps": [{"type": "group", "jobs": [job()]}]}, "$.steps[0]"),
            ({"type": "chain", "steps": [{**job(), "depends_on": ["b"]}]}, "$.steps[0].depends_on"),
            ({"type": "batch", "jobs": [job()]}, "$.callbacks"),
            ({"type": "batch", "jobs": [job()], "callbacks": {}}, "$.callbacks"),
            ({"type": "batch", "jobs": [job()], "callbacks": {"on_any": job()}}, "$.callbacks.'on_any'"),
            ({"type": "batch", "jobs": [job()], "callbacks": {"on_success": {}}}, "$.callbacks.on_success.type"),
            ({"type": "chain", "steps": [job()], "name": 3}, "$.name"),
            ({"type": "chain", "steps": [job()], "name": "\x00"}, "$.name"),
            ({"type": "chain", "steps": [job()], "options": []}, "$.options"),
            ({"type": "chain", "steps": [job()], "note": "\x00"}, "$.The body"),
            ({"type": "chain", "steps": [{**job(), "note": "\x00"}]}, "$.steps[0].args, meta or options"),
        ],
    )
    def test_names_what_is_wrong_and_makes_nothing(self, server, body, path):
        error = server.post("v1/workflows", body, 400)["error"]

        assert (error["code"], error["details"]["validation_errors"][0]["path"]) == ("invalid_workflow", path)
        assert not ScheduledTask.objects.exists()
        assert not Workflow.objects.exists()

    @pytest.mark.parametrize("key", ["019414d4-dddd-7000-8000-000000000001", "x"])
    def test_knows_no_others(self, server, key):
        status = 404 if "-" in key else 400
        server.get(f"v1/workflows/{key}", status=status)
        server.delete(f"v1/workflows/{key}", status=status)


class TestManyJobs:
    @staticmethod
    def statements(server, number):
        """How many statements each part of the life of a batch takes."""
        counts, made = [], {}

        def ask(method, path, body=None, status=200):
            with CaptureQueriesContext(connection) as found:
                answer = server.ask(method, path, body, status)
            counts.append(len(found))
            return answer

        body = {
            "type": "batch",
            "jobs": [job(queue=f"q{number}")] * number,
            "callbacks": {"on_complete": job("cb", queue="cb")},
        }
        for _each in range(2):
            made = ask("POST", "v1/workflows", body, 201)["workflow"]
            ask("GET", f"v1/workflows/{made['id']}")
            ask("DELETE", f"v1/workflows/{made['id']}")
        made = server.post("v1/workflows", body, 201)["workflow"]
        [one, last] = server.fetch(f"q{number}", count=2)
        ask("POST", "v1/workers/ack", {"job_id": one["id"]})
        Workflow.objects.filter(pk=made["id"]).update(ahead=1)  # As if all others had ended.
        ask("POST", "v1/workers/ack", {"job_id": last["id"]})
        ask("POST", "v1/workers/fetch", {"queues": ["cb"]})
        return counts

    @pytest.mark.only_postgresql
    def test_asks_as_often_for_a_thousand_as_for_ten(self, server):
        assert self.statements(server, 10) == self.statements(server, 1000)

    def test_hands_on_the_results_of_many_workflows_at_once(self, server, django_assert_max_num_queries):
        for _each in range(30):
            server.post("v1/workflows", {"type": "chain", "steps": [job(), job("b", queue="late")]}, 201)
        for each, taken in enumerate(server.fetch(count=30)):
            server.ack(taken["id"], result=each)

        with django_assert_max_num_queries(20):
            found = server.fetch("late", count=30)
        assert [taken["parent_results"] for taken in found] == [[each] for each in range(30)]


class TestKeeping:
    def test_echoes_what_it_does_not_know_and_gives_options_to_all(self, flow):
        group = flow(
            type="group", jobs=[job(priority=3), job("b")], options={"queue": "mail", "priority": 1}, note={"x": 1}
        )

        assert group.made["note"] == {"x": 1}
        assert [(each["type"], each["priority"]) for each in group.server.fetch("mail", count=2)] == [
            ("a", 3),
            ("b", 1),
        ]

    def test_lets_what_a_job_says_beside_its_options_come_before_options_for_all(self, flow):
        group = flow(type="group", jobs=[{**job(), "queue": "mine", "priority": 5}], options={"queue": "all"})

        assert [each["priority"] for each in group.server.fetch("mine")] == [5]

    def test_forgets_a_workflow_that_ended_long_ago(self, flow):
        chain, other = flow(type="chain", steps=[job()]), flow(type="chain", steps=[job(queue="x")])
        chain.types()
        chain.ack()
        chain.server.later(days=9)

        pruning.send(None, using="default", ended_before=chain.server.now)

        assert [str(each.pk) for each in Workflow.objects.all()] == [other.made["id"]]
        assert WorkflowJob.objects.count() == 1


class TestWhatCannotBeMadeLater:
    """What follows is read anew when it is made. By then a deploy may have other rules, or PostgreSQL other numbers."""

    BODIES = {
        "chain": {"type": "chain", "steps": [job("a", **ONCE), {**job("b"), "meta": {"colour": "red"}}]},
        "batch": {
            "type": "batch",
            "jobs": [job("a", **ONCE)],
            "callbacks": {"on_complete": {**job("b"), "meta": {"colour": "red"}}, "on_success": job("c")},
        },
    }

    @pytest.fixture
    def refuse(self, settings):
        """Deploy a setting that refuses what was taken."""

        def deploy():
            settings.TIMELINE = {**getattr(settings, "TIMELINE", {}), "SECRET_NAMES": ["colour"]}

        return deploy

    @pytest.mark.parametrize("kind", BODIES)
    def test_fails_the_workflow_and_not_the_report(self, flow, refuse, kind):
        made = flow(**self.BODIES[kind])
        made.types()
        refuse()

        assert made.ack()["state"] == "completed"
        assert made.now()["state"] == "failed"
        assert made.types() == ([] if kind == "chain" else ["c"])

    def test_does_not_keep_others_from_being_fetched_or_rescued(self, flow, refuse):
        batch = flow(type="batch", jobs=[job("a", **ONCE)], callbacks={"on_complete": {**job(), "meta": {"colour": 1}}})
        other = batch.server.enqueue()
        batch.server.fetch(worker_id="dead")
        refuse()
        ScheduledTask.objects.filter(worker="dead").update(lease_expires_at=batch.server.now - timedelta(days=999))

        assert [each["id"] for each in batch.server.fetch()] == [other["id"]]
        assert batch.now()["state"] == "failed"

    @pytest.mark.only_postgresql
    def test_may_be_numbers_that_grow(self, flow):
        chain = flow(type="chain", steps=[job("a"), {"type": "b", "args": [1e300] * 1000}])
        chain.types()

        chain.ack()

        assert chain.now()["state"] == "failed"
