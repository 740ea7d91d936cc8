"""What the tests of metrics share: a database with something to measure, and one that is alone."""

from __future__ import annotations

import pytest
from django.db import router
from django.test import Client

from tests.test_views import OnlyDefault
from timeline import Timeline, task
from timeline.models import Total
from timeline.testing import only_timelines

TOKEN = "a-token-of-many-letters"  # noqa: S105 (of these tests)


class Care(Timeline):
    entity = "testapp.Order"

    @task(queue="slow")
    def greet(self, order) -> None: ...

    @task()
    def call(self, order) -> None: ...


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    monkeypatch.setattr(router, "routers", [OnlyDefault()])
    with only_timelines(Care):
        yield


@pytest.fixture
def total(db):
    """What became of ``care.greet``."""
    return Total.objects.create(
        task_key="care.greet",
        started=9,
        completed=5,
        failed=2,
        reentered=6,
        discarded=1,
        cancelled=3,
        lateness=[4, 0, 0, 2, *[0] * 9, 1],
        duration=[5],
        late_seconds=90007.5,
        taken_seconds=0.25,
    )


@pytest.fixture
def scrape(settings):
    """Scrape the page with the token: ``scrape(accept="…")`` gives the answer."""
    settings.TIMELINE = {"METRICS_TOKEN": TOKEN}

    def get(**headers):
        return Client().get("/metrics/", headers={"authorization": f"Bearer {TOKEN}", **headers})

    return get
