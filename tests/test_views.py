"""Health for probes."""

from __future__ import annotations

import json

import pytest
from django.conf import settings
from django.contrib.auth.models import AnonymousUser, Permission
from django.db import router
from django.test import Client, RequestFactory
from django.utils import timezone

from project.accounts.models import User
from timeline.models import Identity
from timeline.store.site import sign_of_poller
from timeline.views import health


@pytest.fixture(autouse=True)
def _polled(db, monkeypatch):
    monkeypatch.setattr(router, "routers", [OnlyDefault()])
    sign_of_poller(using="default")


class OnlyDefault:
    """Keeps all tables in one database."""

    def allow_migrate(self, db, app_label, **hints):
        return db == "default"


@pytest.fixture
def ask():
    """Ask as somebody: ``ask(user)`` gives status and body."""

    def get(user=None, method="get"):
        request = getattr(RequestFactory(), method)("/health/")
        request.user = user or AnonymousUser()
        answer = health(request)
        return answer.status_code, json.loads(answer.content or "{}")

    return get


class TestHealth:
    def test_is_200_and_well_where_all_is_well(self, ask):
        assert ask() == (200, {"status": "well"})

    def test_tells_everybody_by_whatever_session(self):
        """A cookie spells NUL as an escape, and no database looks for that."""
        octal = "\\000" * 40

        answer = Client().get("/health/", HTTP_COOKIE=f'{settings.SESSION_COOKIE_NAME}="{octal}"')

        assert (answer.status_code, answer.json()) == (200, {"status": "well"})

    def test_is_503_and_sick_where_nobody_polls(self, ask):
        Identity.objects.update(polled_at=None)

        assert ask() == (503, {"status": "sick"})

    def test_is_about_what_is_due_and_not_about_what_was_discarded(self, ask, make_task):
        """A probe that failed for a day because of one task would take the site out of service."""
        make_task(state="discarded", finished_at=timezone.now(), scheduled_at=timezone.now())

        assert ask() == (200, {"status": "well"})

    def test_shows_the_figures_to_staff_who_may_view(self, ask, now):
        staff = User.objects.create(email="s@example.com", signed_up_at=now, trial_ends_at=now, is_staff=True)
        assert ask(staff) == (200, {"status": "well"})

        staff.user_permissions.set(Permission.objects.filter(codename="view_scheduledtask"))
        _status, body = ask(User.objects.get())

        [figures] = body["databases"]
        assert (figures["database"], figures["well"], figures["overdue"]) == ("default", True, 0)

    def test_only_reads(self, ask):
        assert ask(method="post")[0] == 405

    def test_is_not_kept_by_caches(self):
        request = RequestFactory().get("/health/")

        assert "no-cache" in health(request).headers["Cache-Control"]
