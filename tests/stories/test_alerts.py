"""No failure is silent: what is discarded is told to people, once an hour of what failed alike."""

from __future__ import annotations

import re

import pytest
from django.core import mail
from django.test import Client, override_settings

from project.accounts.models import User
from tests.mailing import mail_is_down
from tests.testapp.models import Order
from timeline import Retry, Timeline, task
from timeline.engine.groups import run
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.shortcuts import redrive, schedule
from timeline.signals import alerted
from timeline.store.alerts import TELL, alert_missed
from timeline.testing import only_timelines
from timeline.timelines import Alerts

pytestmark = pytest.mark.django_db(transaction=True)


class Charging(Timeline):
    """Fails for good at once."""

    entity = "testapp.Order"

    @task(atomic=False, retry=Retry(max_attempts=1))
    def charge(self, order):
        raise ValueError(f"order {order.pk} of 'Ann' <ann@example.com> refused: {self.task.payload.get('note', '')}")

    @task(retry=Retry(max_attempts=1))
    def charge_atomically(self, order):
        raise ValueError("refused")

    @task(retry=Retry(max_attempts=2))
    def try_twice(self, order):
        raise ValueError("refused")


@pytest.fixture(autouse=True)
def known():
    with only_timelines(Charging, Alerts), override_settings(TIMELINE={"ALERTS": ["ops@example.com"]}):
        yield


def orders(count):
    return [Order.objects.create() for _ in range(count)]


def scheduled(clock, count=1, name="charge", **given):
    return [schedule(f"charging.{name}", order, at=clock.now, **given).task for order in orders(count)]


def work(clock):
    """Run all that is due, a task after the other, until nothing is left."""
    while ids := [task.pk for task in ScheduledTask.objects.ready()]:
        for task_id in ids:
            run(task_ids=[task_id], clock=lambda: clock.now, using="default")


def alerts():
    return ScheduledTask.objects.filter(task_key=TELL)


class TestADiscard:
    @pytest.mark.parametrize("name", ["charge", "charge_atomically"])
    def test_is_told_to_the_addresses(self, clock, name):
        scheduled(clock, name=name)

        work(clock)

        [message] = mail.outbox
        assert message.to == ["ops@example.com"]
        assert f"charging.{name}: 1 task is discarded" in message.subject
        assert "refused" in message.body
        assert ScheduledTask.objects.exclude(task_key=TELL).get().fingerprint in message.body
        assert alerts().get().state == State.COMPLETED

    def test_is_told_without_what_the_error_quotes(self, clock):
        scheduled(clock, payload={"note": "'hunter two' 4711"})

        work(clock)

        assert "ValueError: order # of # <#> refused: # #" in mail.outbox[0].body

    def test_is_told_once_an_hour_of_what_fails_alike(self, clock):
        scheduled(clock, 5)
        work(clock)
        assert len(mail.outbox) == 1

        clock.advance(hours=1)
        scheduled(clock, 2)
        work(clock)

        assert len(mail.outbox) == 2
        assert re.search(r"charging.charge: 7 tasks are discarded", mail.outbox[1].subject)

    def test_is_told_in_the_transaction_of_the_discard(self, clock):
        scheduled(clock)
        [row] = ScheduledTask.objects.all()

        run(task_ids=[row.pk], clock=lambda: clock.now, using="default")

        alert = alerts().get()
        assert alert.state == State.AVAILABLE
        assert alert.payload["task"] == str(row.pk)
        assert alert.entity_label == ""

    def test_is_not_told_while_it_is_tried_again(self, clock):
        scheduled(clock, name="try_twice")

        work(clock)

        assert not alerts().exists()
        assert mail.outbox == []

    def test_reaches_who_listens(self, clock):
        heard = []

        def hear(alert, using, **_extra):
            heard.append((using, alert))

        alerted.connect(hear)
        try:
            with override_settings(TIMELINE={"ALERTS": []}):
                [row] = scheduled(clock)
                work(clock)
        finally:
            alerted.disconnect(hear)

        [(using, alert)] = heard
        assert (using, alert.kind, alert.about, alert.count) == ("default", "discarded", "charging.charge", 1)
        assert alert.task_id == row.pk
        assert mail.outbox == []

    @pytest.mark.parametrize("given", [{"ALERTS": []}, {}])
    def test_writes_nothing_where_there_is_nobody_to_tell(self, clock, given):
        with override_settings(TIMELINE=given, ADMINS=[]):
            scheduled(clock)
            work(clock)

        assert not alerts().exists()

    @pytest.mark.parametrize("admins", [[("Ada", "ada@example.com")], ["ada@example.com"]])
    def test_is_told_to_the_admins_by_default(self, clock, admins):
        with override_settings(TIMELINE={}, ADMINS=admins):
            scheduled(clock)
            work(clock)

        assert mail.outbox[0].to == ["ada@example.com"]


@pytest.mark.timeline(raises=False)
class TestAMailServerThatIsDown:
    @pytest.fixture(autouse=True)
    def down(self):
        with mail_is_down():
            yield

    def test_is_tried_again_and_never_alerted_of(self, clock):
        scheduled(clock)
        work(clock)
        alert = alerts().get()
        assert alert.state == State.RETRYABLE

        ScheduledTask.objects.filter(pk=alert.pk).update(max_attempts=2)
        clock.advance(hours=2)
        run(task_ids=[alert.pk], clock=lambda: clock.now, using="default")

        assert alerts().get().state == State.DISCARDED
        assert redrive(alerts().get(), reason="it is back")


class TestAlertMissed:
    def test_is_told(self, clock):
        alert_missed({"nightly": "02:00 was passed over."}, now=clock.now, using="default")

        work(clock)

        assert "nightly: a time was passed over" in mail.outbox[0].subject
        assert mail.outbox[0].body.strip() == "02:00 was passed over."


class TestALink:
    @pytest.fixture
    def urls(self, settings):
        settings.TIMELINE = {"ALERTS": ["ops@example.com"], "BASE_URL": "https://example.com"}
        heard = []

        def hear(alert, **_signal):
            heard.append(alert.url)

        alerted.connect(hear, weak=False)
        yield heard
        alerted.disconnect(hear)

    @pytest.fixture
    def boss(self, clock):
        """Somebody who may see all of it, logged in."""
        rights = {"is_staff": True, "is_superuser": True}
        times = {"signed_up_at": clock.now, "trial_ends_at": clock.now}
        client = Client()
        client.force_login(User.objects.create(email="boss@example.com", **rights, **times))
        return client

    def test_leads_from_the_mail_to_the_group_and_the_task(self, clock, urls, boss):
        scheduled(clock)

        work(clock)

        links = re.findall(r"https://example\.com(\S+)", mail.outbox[0].body)
        assert len(links) == 2
        for link in links:
            assert "charging.charge" in boss.get(link).content.decode()
        assert urls == [f"https://example.com{links[0]}"]

    def test_leads_to_the_page_of_health_for_what_was_missed(self, clock, urls, boss):
        alert_missed({"charging": "from 1 to 2"}, now=clock.now, using="default")

        work(clock)

        [link] = re.findall(r"https://example\.com(\S+)", mail.outbox[0].body)
        assert boss.get(link).status_code == 200

    def test_is_none_where_no_address_of_the_site_is_set(self, clock):
        """Not even that of whoever asked: a mail never leads where a request says."""
        scheduled(clock)

        work(clock)

        assert "http" not in mail.outbox[0].body
