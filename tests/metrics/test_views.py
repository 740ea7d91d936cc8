"""The page that Prometheus scrapes: nothing is visible without the right."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from prometheus_client.openmetrics.parser import text_string_to_metric_families as as_openmetrics
from prometheus_client.parser import text_string_to_metric_families as as_text

from project.accounts.models import User
from tests.metrics.conftest import TOKEN

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.metrics.addresses")]


class TestMetrics:
    def test_can_be_read_by_a_scraper(self, total, scrape):
        answer = scrape()

        found = {family.name: family for family in as_text(answer.content.decode())}
        assert answer["Content-Type"].startswith("text/plain")
        assert found["timeline_tasks_ended"].type == "counter"
        assert {sample.value for sample in found["timeline_tasks_ended"].samples} == {5, 1, 3}
        assert "no-store" in answer["Cache-Control"]

    def test_speaks_openmetrics_with_who_asks_for_it(self, total, scrape):
        answer = scrape(accept="application/openmetrics-text; version=1.0.0")

        found = {family.name: family for family in as_openmetrics(answer.content.decode())}
        assert answer["Content-Type"].startswith("application/openmetrics-text")
        assert found["timeline_attempt_lateness_seconds"].type == "histogram"

    @pytest.mark.parametrize("accept", ["text/plain; version=new", "application/openmetrics-text; version=1.x"])
    def test_speaks_plainly_with_who_asks_for_a_version_that_is_none(self, total, scrape, accept):
        answer = scrape(accept=accept)

        assert answer.status_code == 200
        assert answer["Content-Type"].startswith("text/plain; version=0.0.4")

    @pytest.mark.parametrize(
        "header", ["", "Bearer", "Bearer ", "Bearer wrong", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer ä"]
    )
    def test_refuses_others_before_it_reads_anything(self, total, scrape, header):
        with CaptureQueriesContext(connection) as asked:
            answer = scrape(authorization=header)

        assert (answer.status_code, answer.content, len(asked)) == (401, b"", 0)
        assert answer["WWW-Authenticate"].startswith("Bearer")

    @pytest.mark.parametrize("header", ["", "Bearer", "Bearer "])
    def test_takes_no_token_where_none_is_set(self, total, settings, header):
        settings.TIMELINE = {}

        assert Client().get("/metrics/", headers={"authorization": header}).status_code == 401

    @pytest.mark.parametrize(
        ("is_staff", "may_view", "status"), [(True, True, 200), (True, False, 401), (False, True, 401)]
    )
    def test_shows_them_to_who_sees_health(self, total, user, is_staff, may_view, status):
        User.objects.filter(pk=user.pk).update(is_staff=is_staff)
        if may_view:
            user.user_permissions.add(Permission.objects.get(codename="view_scheduledtask"))
        client = Client()
        client.force_login(user)

        assert client.get("/metrics/").status_code == status

    def test_looks_for_no_session_by_a_key_with_nul(self, total):
        """A cookie spells NUL as an escape."""
        octal = "\\000" * 40

        answer = Client().get("/metrics/", HTTP_COOKIE=f'{settings.SESSION_COOKIE_NAME}="{octal}"')

        assert answer.status_code == 401

    def test_takes_no_post(self, total, scrape):
        assert Client().post("/metrics/").status_code == 405
