"""
A server that is killed (``kill -9``) before each statement and each commit of a request, and after each commit. Its client
sends the request again until it is answered.
"""

from __future__ import annotations

import http.client
import json
import socket
from collections import Counter
from itertools import count

import pytest

from tests.processes import kill, let_be_dead, start_process, wait_for
from timeline.ids import uuid7s
from timeline.models import LogEntry, ScheduledTask
from timeline.ojs.models import Cron, Workflow, WorkflowJob

pytestmark = pytest.mark.django_db(transaction=True)
RETRY = {"max_attempts": 9, "initial_interval_ms": 0}
TYPE = {"Content-Type": "application/openjobspec+json"}


class Client:
    """Asks one thing after the other. Each request is sent again after the server has died of it, at the next point."""

    def __init__(self, port):
        self.port, self.deaths = port, 0

    def ask(self, path, body=None, method="POST", *, after_each=lambda: None, dies=True):
        """Give the status of the answer, and what it says."""
        for point in count(1) if dies else [0]:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            try:
                connection.request(method, f"/ojs/v1/{path}", json.dumps(body or {}), {**TYPE, "X-Die-At": str(point)})
                answer = connection.getresponse()
                return answer.status, json.loads(answer.read())
            except (ConnectionError, http.client.HTTPException):
                self.deaths += 1
                after_each()
            finally:
                connection.close()
        raise AssertionError("the server died by itself")

    def take(self, *, dies=False):
        """Take a job. One that the last server took before it died comes back when its lease is over."""
        body = {"queues": ["default"], "worker_id": "w"}
        if dies:
            assert self.ask("workers/fetch", body) == (200, {"jobs": []})
            let_be_dead()
        return self.ask("workers/fetch", body, dies=False)[1]["jobs"][0]


@pytest.fixture
def client(tmp_path):
    """A client, and a server that is there."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = start_process(tmp_path, "server", "tests.ojs.mortal", str(port))

    def is_there():
        with socket.socket() as asking:
            return asking.connect_ex(("127.0.0.1", port)) == 0

    wait_for(is_there, "a server")
    yield Client(port)
    kill(process)


def job(name="a", **options):
    """What a job is made of."""
    return {"type": name, "args": [], "options": {"retry": RETRY, **options}}


def test_jobs_of_one_request_are_made_all_or_none(client):
    seen = set()
    ids = [str(key) for key in uuid7s(1000)]
    jobs = [{**job(), "id": key} for key in ids]

    status, _said = client.ask("jobs/batch", {"jobs": jobs}, after_each=lambda: seen.add(ScheduledTask.objects.count()))

    assert status == 409  # It was made by the last that died: after its commit.
    assert seen == {0, 1000}
    assert LogEntry.objects.count() == 1000
    assert client.deaths > 3


def test_a_failure_counts_once_and_a_heartbeat_loses_nothing(client):
    client.ask("jobs", {**job(), "id": str(uuid7s(1)[0])})
    taken = client.take()
    before = Counter(LogEntry.objects.values_list("to_state", flat=True))["retryable"]

    status, said = client.ask("workers/heartbeat", {"worker_id": "w", "active_jobs": [taken["id"]]})
    assert (status, said["jobs_lost"]) == (200, [])
    mine = {"job_id": taken["id"], "worker_id": "w", "attempt": taken["attempt"]}
    status, _said = client.ask("workers/nack", {**mine, "error": {"code": "e", "message": ""}})

    assert status == 409
    row = ScheduledTask.objects.get()
    assert row.failures == before + 1
    assert Counter(LogEntry.objects.values_list("to_state", flat=True))["retryable"] == before + 1
    again = client.take()
    assert client.ask("workers/ack", {"job_id": again["id"], "worker_id": "w"})[0] == 409
    assert ScheduledTask.objects.get().state == "completed"


def test_a_schedule_has_one_row_ahead_and_goes_with_it(client):
    body = {"name": "nightly", "expression": "@daily", "type": "a", "args": []}
    seen = set()

    def look():
        seen.add((Cron.objects.count(), ScheduledTask.objects.open().count()))

    assert client.ask("cron", body, after_each=look)[0] == 409
    assert client.ask("cron/nightly", method="DELETE", after_each=look)[0] == 404
    assert seen == {(0, 0), (1, 1)}


STEPS = ["one", "two", "three"]
CALLS = {"on_complete": job("complete"), "on_success": job("success"), "on_failure": job("failure")}
WORKFLOWS = {
    "chain": {"type": "chain", "steps": [job(name) for name in STEPS]},
    "batch": {"type": "batch", "jobs": [job(name) for name in STEPS], "callbacks": CALLS},
}


def check_whole():
    """Of each workflow, what is counted is what is there: of a chain, one step more than have ended."""
    for workflow in Workflow.objects.all():
        made = WorkflowJob.objects.filter(workflow=workflow)
        ended = ScheduledTask.objects.filter(pk__in=made.values("pk"), state="completed").count()
        assert ScheduledTask.objects.filter(pk__in=made.values("pk")).count() == made.count()
        assert (workflow.ahead, ended) == (made.count() - ended, made.filter(has_ended=True).count())
        if workflow.kind == "chain":
            assert made.count() == min(ended + 1, len(STEPS))


@pytest.mark.parametrize("kind", WORKFLOWS)
def test_a_workflow_does_each_thing_once(client, kind):
    client.ask("workflows", WORKFLOWS[kind], dies=False)
    done = []
    while ScheduledTask.objects.open().exists():
        taken = client.take(dies=kind == "chain" and not done)
        done.append((taken["type"], taken["parent_results"]))
        mine = {"job_id": taken["id"], "worker_id": "w", "attempt": taken["attempt"], "result": taken["type"]}
        assert client.ask("workers/ack", mine, after_each=check_whole)[0] == 409

    if kind == "chain":
        assert done == [("one", []), ("two", STEPS[:1]), ("three", STEPS[:2])]
    else:
        assert done == [*((name, []) for name in STEPS), ("complete", STEPS), ("success", STEPS)]
    assert Workflow.objects.get().state == "completed"
    ends = LogEntry.objects.filter(to_state="completed").values_list("task", flat=True)
    assert len(ends) == len(set(ends)) == len(done)
    assert client.deaths > 20


def test_a_workflow_is_made_and_cancelled_as_a_whole(client):
    """The request that makes it says no id. So a client that sends it again may have several."""
    assert client.ask("workflows", {"type": "group", "jobs": [job()] * 3}, after_each=check_whole)[0] == 201
    first, *others = Workflow.objects.order_by("pk")
    seen = set()

    def look():
        jobs = WorkflowJob.objects.filter(workflow=first).values("pk")
        first.refresh_from_db()
        seen.add((first.state, ScheduledTask.objects.open().filter(pk__in=jobs).count()))

    assert client.ask(f"workflows/{first.pk}", method="DELETE", after_each=look)[0] == 409
    assert seen == {("running", 3), ("cancelled", 0)}
    assert {workflow.state for workflow in others} == {"running"}
