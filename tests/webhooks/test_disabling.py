"""What is sent again, with others at it at the same time."""

from __future__ import annotations

import threading

import pytest
from django.db import connections, transaction

from tests.webhooks.test_sending import deliver, told_order
from timeline.exceptions import InvalidInput
from timeline.testing import only_timelines
from timeline.timelines import Alerts
from timeline.webhooks.disabling import disable, replay
from timeline.webhooks.models import Delivery, Disabled, Endpoint, State


class TestDisable:
    def test_is_told_by_mail_whatever_the_endpoint_is_called(self, endpoint_for, clock, settings, mailoutbox):
        """A mail whose subject has a line break is never sent, and whoever names an endpoint may write one."""
        settings.TIMELINE = {"ALERTS": ["ops@example.com"]}
        endpoint_for("told")
        Endpoint.objects.update(description="Books\r\nBcc: someone@example.com")
        with only_timelines(Alerts):
            disable(Endpoint.objects.get(), Disabled.GONE, now=clock.now, using="default")
            clock.run_due()

        [mail] = mailoutbox
        assert mail.subject.endswith("nothing is sent to Books Bcc: someone@example.com any more")


class TestReplay:
    def test_looks_at_the_endpoint_as_it_is_now(self, endpoint_for, receiver, clock):
        endpoint = endpoint_for("told")
        told_order("told.asked")
        deliver()
        disable(Endpoint.objects.get(), Disabled.OPERATOR, now=clock.now, using="default")

        with pytest.raises(InvalidInput, match="disabled"):
            replay(endpoint, now=clock.now, using="default")

        assert not Delivery.objects.waiting().exists()


@pytest.mark.only_postgresql
@pytest.mark.django_db(transaction=True)
class TestReplayAtOnce:
    def test_with_another_sends_each_delivery_once(self, endpoint_for, receiver, clock):
        endpoint = endpoint_for("told")
        told_order("told.asked")
        told_order("told.asked")
        deliver()
        counts, begun = [], threading.Barrier(2)

        def act():
            try:
                begun.wait(120)
                counts.append(replay(endpoint, now=clock.now, using="default"))
            finally:
                connections.close_all()

        threads = [threading.Thread(target=act) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        deliver()

        assert sorted(counts) == [0, 2]
        assert len(receiver.requests) == 4

    def test_waits_for_whoever_disables_it_and_then_sends_nothing(self, endpoint_for, receiver, clock):
        endpoint = endpoint_for("told")
        told_order("told.asked")
        deliver()
        refused = []

        def act():
            try:
                replay(endpoint, now=clock.now, using="default")
            except InvalidInput as error:
                refused.append(error)
            finally:
                connections.close_all()

        thread = threading.Thread(target=act)
        with transaction.atomic():
            held = Endpoint.objects.select_for_update().get()
            disable(held, Disabled.OPERATOR, now=clock.now, using="default")
            thread.start()
            thread.join(0.2)
            waited = thread.is_alive()
        thread.join(120)

        assert (waited, len(refused)) == (True, 1)
        assert not Delivery.objects.filter(state=State.WAITING).exists()
