"""Nobody sends though deliveries wait: the doctor says so, the page of health, the lists of the admin, and a mail."""

from __future__ import annotations

import re
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.urls import reverse
from django.utils import translation

from tests.webhooks.test_sending import deliver, told_order
from timeline.clocks import MachineTime, story_now
from timeline.dispatch.worker_signs import tell_troubles
from timeline.models import ScheduledTask
from timeline.reading.diagnosis import diagnose
from timeline.testing import only_timelines
from timeline.timelines import Alerts
from timeline.webhooks.disabling import disable
from timeline.webhooks.models import Disabled, SenderSign
from timeline.webhooks.upkeep import give_sign, take_leave, unsent_since

HEALTH = "admin:timeline_scheduledtask_health"
LISTS = ("admin:timeline_webhooks_endpoint_changelist", "admin:timeline_webhooks_delivery_changelist")


@pytest.fixture
def unsent(endpoint_for, clock):
    """A delivery that has been due for two minutes, at an endpoint."""
    endpoint = endpoint_for("told")
    told_order("told.asked")
    clock.advance(minutes=2)
    return endpoint


@pytest.fixture
def staff_client(client, django_user_model, clock):
    client.force_login(
        django_user_model.objects.create(
            email="root@example.com",
            website="r.example",
            signed_up_at=clock.now,
            trial_ends_at=clock.now,
            is_staff=True,
            is_superuser=True,
        )
    )
    return client


def troubles():
    return diagnose(now=story_now("default"), using="default").troubles


def doctor(**options):
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command("timeline_doctor", stdout=out, **options)
    return out.getvalue()


class TestTrouble:
    def test_is_that_nobody_sends_and_says_since_when_and_what_to_do(self, unsent):
        [text] = troubles()

        assert "the oldest since 2026-03-01 09:00 UTC" in text
        assert "Start timeline_webhooks." in text
        with translation.override("de"):
            [text] = troubles()
            assert "Starten Sie timeline_webhooks." in text

    def test_is_none_while_somebody_gives_signs(self, unsent):
        give_sign("one", using="default")
        assert troubles() == []

        SenderSign.objects.update(seen_at=MachineTime(timedelta(minutes=-3)))
        assert len(troubles()) == 1

    def test_is_there_again_once_the_last_sender_has_stopped(self, unsent):
        give_sign("one", using="default")

        take_leave("one", using="default")

        assert len(troubles()) == 1

    def test_is_none_where_nothing_waits_or_not_for_long(self, endpoint_for, receiver, clock):
        endpoint_for("told")
        assert troubles() == []

        told_order("told.asked")
        clock.advance(minutes=1)
        assert troubles() == []

        clock.advance(minutes=1)
        deliver()
        SenderSign.objects.all().delete()
        assert troubles() == []

    def test_is_none_where_the_endpoint_is_disabled(self, unsent, clock):
        disable(unsent, Disabled.OPERATOR, now=clock.now, using="default")

        assert troubles() == []

    def test_costs_one_statement(self, unsent, django_assert_num_queries):
        with django_assert_num_queries(1):
            unsent_since(now=story_now("default"), using="default")


class TestSigns:
    def test_of_those_that_were_killed_are_forgotten_after_an_hour(self, db):
        for name in ("one", "two"):
            give_sign(name, using="default")
        SenderSign.objects.filter(name="one").update(seen_at=MachineTime(timedelta(hours=-2)))

        give_sign("two", using="default")

        assert list(SenderSign.objects.values_list("name", flat=True)) == ["two"]

    def test_are_given_by_who_sends_what_is_due_and_ends(self, endpoint_for, receiver):
        endpoint_for("told")

        deliver()

        assert SenderSign.objects.count() == 1


class TestWhoLooks:
    def test_reads_it_from_the_doctor(self, unsent):
        assert "nobody sends the deliveries that wait" in doctor(database="default")

    def test_reads_it_on_the_page_of_health_and_above_the_lists(self, unsent, staff_client):
        assert "nobody sends the deliveries that wait" in staff_client.get(reverse(HEALTH)).content.decode()
        for name in LISTS:
            page = staff_client.get(reverse(name)).content.decode()
            assert re.search(r"Nobody sends the deliveries that wait \(the oldest since \S+ \d\d:\d\d\)", page)
            assert "Times are those of UTC." in page

        give_sign("one", using="default")
        for name in LISTS:
            assert "Nobody sends" not in staff_client.get(reverse(name)).content.decode()

    def test_is_told_by_a_mail_once_an_hour(self, unsent, clock, settings, mailoutbox):
        settings.TIMELINE = {"ALERTS": ["ops@example.com"]}
        with only_timelines(Alerts):
            for _look in range(3):
                tell_troubles(using="default")

            [alert] = ScheduledTask.objects.filter(task_key="alerts.tell")
            clock.advance(seconds=0)

        assert (alert.payload["kind"], alert.payload["about"]) == ("unsent", "default")
        [mail] = mailoutbox
        assert "nobody sends what waits in the database default" in mail.subject
        assert "Start timeline_webhooks." in mail.body

    def test_is_told_nothing_where_nobody_is_to_be_told(self, unsent, settings):
        settings.TIMELINE = {}

        tell_troubles(using="default")

        assert not ScheduledTask.objects.filter(task_key="alerts.tell").exists()
