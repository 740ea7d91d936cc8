"""Nobody polls: who notices has people told."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core import mail
from django.core.management import CommandError, call_command
from django.db import transaction
from django.test import override_settings
from django.urls import reverse
from django.utils import timezone

from tests.mailing import mail_is_down
from timeline.dispatch.worker_signs import tell_if_unpolled
from timeline.lifecycle import State
from timeline.management.commands import timeline_doctor
from timeline.models import Identity, ScheduledTask
from timeline.store.site import sign_of_poller

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])


@pytest.fixture(autouse=True)
def told():
    with override_settings(TIMELINE={"ALERTS": ["ops@example.com"]}):
        yield


@pytest.fixture
def silent():
    """The last poll was three minutes ago, by the real clock; the other database was polled just now."""
    ago = timezone.now() - timedelta(minutes=3)
    Identity.objects.update(polled_at=ago, adopted_at=ago - timedelta(days=1))
    Identity.objects.using("other").update(polled_at=timezone.now())


class TestTellIfUnpolled:
    def test_tells_once_an_hour(self, silent, clock):
        [alert] = tell_if_unpolled(using="default")
        assert tell_if_unpolled(using="default") == []

        [message] = mail.outbox
        assert alert.state == State.COMPLETED
        assert "Nobody polls the database default" in message.subject
        assert "timeline_worker" in message.body

        clock.advance(hours=1)
        tell_if_unpolled(using="default")
        assert len(mail.outbox) == 2

    def test_tells_where_nobody_ever_polled(self, silent, clock):
        Identity.objects.update(polled_at=None)

        assert tell_if_unpolled(using="default")

    def test_says_nothing_of_a_database_that_is_polled_or_new_or_of_another_site(self, silent, clock):
        sign_of_poller(using="default")
        assert tell_if_unpolled(using="default") == []

        Identity.objects.update(polled_at=None, adopted_at=timezone.now())
        assert tell_if_unpolled(using="default") == []

        Identity.objects.update(adopted_at=timezone.now() - timedelta(days=1), site="another")
        assert tell_if_unpolled(using="default") == []
        assert mail.outbox == []

    def test_does_nothing_in_a_transaction(self, silent, clock):
        with transaction.atomic():
            assert tell_if_unpolled(using="default") == []

        assert not ScheduledTask.objects.exists()

    def test_tries_again_what_the_mail_server_refused(self, silent, clock):
        clock.set(clock.now.replace(minute=30))  # Five minutes on, the hour of the alert is still the same.
        with mail_is_down():
            tell_if_unpolled(using="default")
        assert ScheduledTask.objects.get().state == State.RETRYABLE

        clock.advance(minutes=5)
        tell_if_unpolled(using="default")

        assert ScheduledTask.objects.get().state == State.COMPLETED
        assert len(mail.outbox) == 1


class TestWhoNotices:
    def test_is_the_health_view(self, silent, clock, client):
        client.get(reverse("health"))

        assert len(mail.outbox) == 1

    def test_is_the_doctor_that_watches(self, silent, clock, monkeypatch):
        class Stopped(Exception):
            pass

        def stop(seconds):
            raise Stopped(seconds)

        monkeypatch.setattr(timeline_doctor.time, "sleep", stop)
        with pytest.raises(Stopped, match=r"30\.0"):
            call_command("timeline_doctor", "--watch", "30", "--database", "default")

        assert len(mail.outbox) == 1

    @pytest.mark.parametrize("seconds", ["0", "-1", "nan", "soon", "99999"])
    def test_is_not_one_without_a_sensible_time(self, db, seconds):
        with pytest.raises(CommandError, match="is not allowed"):
            call_command("timeline_doctor", "--watch", seconds)
