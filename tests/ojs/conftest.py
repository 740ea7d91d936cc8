"""What tests of the Open Job Specification share."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import partial

import pytest
from django.test import Client

from tests.rows import NOW
from timeline.clocks import story_time
from timeline.dispatch.poll import stage
from timeline.dispatch.rescue import rescue
from timeline.models import ScheduledTask
from timeline.ojs.kinds import Jobs
from timeline.ojs.timelines import OjsCron
from timeline.testing import only_timelines

TYPE = "application/openjobspec+json"


class Server:
    """The server as a client sees it. ``now`` is story time, which tests advance."""

    def __init__(self):
        self.client, self.now, self.headers = Client(), NOW, {}

    def ask(self, method, path, body=None, status=200, **headers):
        """Send a request; give what is answered, which has this status."""
        given = (
            {} if method in ("GET", "DELETE") else {"data": body if isinstance(body, str) else json.dumps(body or {})}
        )
        with story_time(lambda: self.now):
            self.answer = self.client.generic(
                method, f"/ojs/{path}", content_type=headers.pop("kind", TYPE), headers=self.headers | headers, **given
            )
        assert self.answer.status_code == status, self.answer.content
        assert self.answer["Content-Type"] == TYPE
        assert self.answer["OJS-Version"] == "1.0"
        assert self.answer["X-Request-Id"]
        return json.loads(self.answer.content)

    def __getattr__(self, name):
        return partial(self.ask, name.upper())

    def enqueue(self, status=201, **body):
        """Make a job; ``options`` may be given by their names."""
        options = {name: body.pop(name) for name in [*body] if name not in ("id", "type", "args", "meta")}
        return self.post("v1/jobs", {"type": "email.send", "args": [], **body, "options": options}, status).get("job")

    def fetch(self, *queues, **body):
        """Take jobs."""
        return self.post("v1/workers/fetch", {"queues": queues or ["default"], **body})["jobs"]

    def job(self, job_id):
        """Read a job."""
        return self.get(f"v1/jobs/{job_id}")["job"]

    def ack(self, job_id, status=200, **body):
        """Say that a job has succeeded."""
        return self.post("v1/workers/ack", {"job_id": job_id, **body}, status)

    def nack(self, job_id, status=200, error=None, **body):
        """Say that a job has failed."""
        error = error or {"code": "handler_error", "message": "It broke."}
        return self.post("v1/workers/nack", {"job_id": job_id, "error": error, **body}, status)

    def later(self, **length):
        """Let time pass."""
        self.now += timedelta(**length)

    def poll(self):
        """What a poller does for jobs: give up what was lost, and make available what is due."""
        ScheduledTask.objects.filter(lease_expires_at__isnull=False, worker="dead").update(
            lease_expires_at=NOW - timedelta(days=9)
        )
        rescue(now=self.now, using="default")
        stage(now=self.now, using="default")


@pytest.fixture
def server(db, settings):
    """A server at which everybody may do everything."""
    settings.ROOT_URLCONF = "tests.ojs.urls"
    settings.TIMELINE_OJS = {"ANYBODY": True}
    with only_timelines(Jobs, OjsCron):
        yield Server()
