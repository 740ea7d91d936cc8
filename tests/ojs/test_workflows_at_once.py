"""Workflows while several do something at once, or somebody dies between an outcome and what follows it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from django.db import DatabaseError
from django.db.models import QuerySet

from tests.ojs.outside import ask
from timeline.models import ScheduledTask
from timeline.ojs.models import Workflow, WorkflowJob

pytestmark = pytest.mark.django_db(transaction=True)


def job(name="a", **options):
    """What a job is made of."""
    return {"type": name, "args": [], "options": options}


def status_of(call):
    """The status that a request was answered with."""
    try:
        call()
    except HTTPError as error:
        return error.code
    return 200


@pytest.mark.parametrize("last", ["complete", "fail"])
def test_the_last_two_that_end_at_once_call_back_once(server, live_server, last):
    retry = {"max_attempts": 1}
    body = {"type": "batch", "jobs": [job(retry=retry)] * 8, "callbacks": {"on_complete": job("cb", queue="cb")}}
    ask(live_server.url, "workflows", body)
    taken = ask(live_server.url, "workers/fetch", {"queues": ["default"], "count": 8})["jobs"]

    def end(each):
        error = {} if last == "complete" else {"error": {"code": "e", "message": ""}}
        return status_of(
            lambda: ask(live_server.url, f"workers/{'n' if error else ''}ack", {"job_id": each["id"], **error})
        )

    with ThreadPoolExecutor(8) as pool:
        assert [*pool.map(end, taken)] == [200] * 8

    assert len(ask(live_server.url, "workers/fetch", {"queues": ["cb"], "count": 9})["jobs"]) == 1
    workflow = Workflow.objects.get()
    assert (workflow.completed, workflow.failed) == ((8, 0) if last == "complete" else (0, 8))


def test_a_chain_that_is_cancelled_while_its_step_ends_leaves_nothing_open(server, live_server):
    chains = [
        ask(live_server.url, "workflows", {"type": "chain", "steps": [job(), job("b", queue="b")]})["workflow"]
        for _each in range(10)
    ]
    ask(live_server.url, "workers/fetch", {"queues": ["default"], "count": 10})

    def end(chain):
        return status_of(lambda: ask(live_server.url, "workers/ack", {"job_id": chain["steps"][0]["job_id"]}))

    def cancel(chain):
        request = Request(f"{live_server.url}/ojs/v1/workflows/{chain['id']}", method="DELETE")  # noqa: S310 (ours)
        return status_of(lambda: urlopen(request))  # noqa: S310

    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(call, chain) for chain in chains for call in (end, cancel)]
        statuses = [each.result() for each in asked]

    assert set(statuses) == {200}
    assert ask(live_server.url, "workers/fetch", {"queues": ["b"], "count": 10})["jobs"] == []
    assert {workflow.state for workflow in Workflow.objects.all()} == {"cancelled"}


def test_an_outcome_is_not_kept_without_what_follows(server, monkeypatch):
    made = server.post("v1/workflows", {"type": "chain", "steps": [job(), job("b")]}, 201)["workflow"]
    [taken] = server.fetch()

    def die(*_given, **_more):
        raise DatabaseError("The server is gone.")

    with monkeypatch.context() as patched:
        patched.setattr(QuerySet, "bulk_create", die)
        assert server.ack(taken["id"], status=500)["error"]["retryable"]
    assert ScheduledTask.objects.get().state == "active"
    assert WorkflowJob.objects.get().has_ended is False

    server.ack(taken["id"])
    assert [each["type"] for each in server.fetch()] == ["b"]
    assert server.get(f"v1/workflows/{made['id']}")["workflow"]["steps_completed"] == 1


def test_a_workflow_is_made_whole_or_not_at_all(server, monkeypatch):
    def die(*_given, **_more):
        raise DatabaseError("The server is gone.")

    with monkeypatch.context() as patched:
        patched.setattr(QuerySet, "bulk_create", die)
        server.post("v1/workflows", {"type": "group", "jobs": [job()] * 3}, 500)

    assert not ScheduledTask.objects.exists()
    assert not Workflow.objects.exists()
