"""What the tests of the admin share: a timeline, accounts of staff, and the addresses of the pages."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse

from project.accounts.models import User
from tests.people import log_in, permit
from timeline import Timeline, after, task
from timeline.models import ref_of
from timeline.testing import StoryClock, only_timelines

ALL = (
    "view_scheduledtask",
    "cancel_scheduledtask",
    "move_scheduledtask",
    "run_now_scheduledtask",
    "redrive_scheduledtask",
    "decide_scheduledtask",
    "view_payload",
)
LIST = reverse("admin:timeline_scheduledtask_changelist")
ACT = reverse("admin:timeline_scheduledtask_act")
ENTITY = reverse("admin:timeline_scheduledtask_entity")


def detail(row):
    """Address of a task's page."""
    return reverse("admin:timeline_scheduledtask_change", args=[row.pk])


def text_of(response):
    """What a page says, in one line."""
    return " ".join(response.content.decode().split())


class Care(Timeline):
    """About orders; its follow-up is foreseen."""

    entity = "testapp.Order"
    starts_on = "order.placed"
    exits = {"order.returned": "returned"}

    @task(after(days=3))
    def greet(self, order): ...

    @task(after(greet, days=7))
    def follow_up(self, order): ...

    @task(tags=("mail",))
    def call(self, order): ...


class Account(Timeline):
    """About accounts themselves."""

    entity = "accounts.User"

    @task()
    def welcome(self, user): ...


@pytest.fixture(autouse=True)
def clock(db, now):
    """Story time, with just these timelines."""
    with only_timelines(Care, Account), StoryClock(now) as clock:
        yield clock


@pytest.fixture
def person(db, now):
    """Make an account: ``person("ada")``; with permissions it is staff."""

    def make(name, *permissions, **columns):
        columns.setdefault("is_staff", bool(permissions))
        columns.setdefault("website", f"{name}.example")
        made = User.objects.create(email=f"{name}@example.com", signed_up_at=now, trial_ends_at=now, **columns)
        if permissions:
            permit(made, *permissions)
        return made

    return make


@pytest.fixture
def browse():
    """Log somebody in, with the checks of forms that browsers meet."""

    def browser(user):
        client = Client()
        log_in(client, user)
        return client

    return browser


@pytest.fixture
def operator(person, browse):
    """The browser of somebody who may do everything."""
    return browse(person("operator", *ALL))


@pytest.fixture
def about(make_task, now):
    """Make an ad hoc row about an entity, due in so many hours: ``about(order, 5)``."""

    def make(entity, hours=1.0, **columns):
        ref = ref_of(entity)
        columns.setdefault("task_key", "care.call")
        return make_task(entity_label=ref.label, entity_id=ref.id, scheduled_at=now + timedelta(hours=hours), **columns)

    return make
