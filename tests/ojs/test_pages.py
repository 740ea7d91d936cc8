"""Pages of the admin and answers of the API that have jobs among what they show."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from project.accounts.models import User
from tests.people import log_in
from timeline.models import ScheduledTask


@pytest.fixture
def staff(server, settings, user):
    """Jobs in several states, and a client of somebody who may see everything."""
    for options in ({}, {"scheduled_at": "+PT1H"}, {"pending": True}):
        server.enqueue(**options)
    failed = server.enqueue(queue="q", retry={"max_attempts": 1, "on_exhaustion": "dead_letter"})["id"]
    server.fetch("q", worker_id="w")
    server.nack(failed)
    server.post("v1/cron", {"name": "n", "expression": "@daily", "type": "a", "args": []}, 201)
    settings.ROOT_URLCONF = "project.urls"
    client = Client()
    User.objects.update(is_staff=True, is_superuser=True)
    log_in(client, user)
    return client


@pytest.mark.parametrize("name", ["changelist", "dead", "attention", "inventory"])
def test_lists(staff, name):
    assert staff.get(reverse(f"admin:timeline_scheduledtask_{name}")).status_code == 200


def test_a_job(staff):
    for task in ScheduledTask.objects.all():
        page = staff.get(reverse("admin:timeline_scheduledtask_change", args=[task.pk]))
        assert page.status_code == 200
        assert ("workers outside" in page.content.decode()) == task.task_key.startswith("ojs.")


@pytest.mark.parametrize("name", ["ojs", "ojs_cron"])
def test_their_timeline(staff, name):
    assert staff.get(reverse("admin:timeline_scheduledtask_timeline", args=[name])).status_code == 200


@pytest.mark.parametrize("path", ["tasks/", "dead-letters/"])
def test_the_api(staff, path):
    assert staff.get(f"/api/v1/{path}").status_code == 200
