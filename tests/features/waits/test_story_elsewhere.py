"""An invoice that waits for its order: what docs/how-to/waits.md says of events of another entity."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction
from django.test import Client

from project.accounts.models import User
from tests.testapp.models import Invoice, Order
from timeline import Timeline, after, task, wait_for
from timeline.models import ScheduledTask, Wake
from timeline.shortcuts import emit
from timeline.testing import only_timelines


class Collecting(Timeline):
    """As in the docs."""

    entity = "testapp.Invoice"
    starts_on = "invoice.sent"
    exits = {"invoice.withdrawn": "withdrawn"}

    @task(wait_for("order.paid", of="order", within=timedelta(days=14)))
    def close(self, invoice):
        return "closed" if self.awaited else "reminded"

    @task(after(days=1), atomic=False)
    def follow(self, invoice):
        returned = self.wait_for("order.returned", of=invoice.order, within=timedelta(days=30))
        return "taken back" if returned else "kept"


@pytest.fixture(autouse=True)
def _collecting(clock):
    with only_timelines(Collecting):
        yield


@pytest.fixture
def invoice(order):
    invoice = Invoice.objects.create(order=order)
    emit("invoice.sent", invoice)
    return invoice


def result(name):
    task = ScheduledTask.objects.get(task_key=f"collecting.{name}")
    return task.result or task.state


class TestAnInvoice:
    def test_is_closed_when_its_order_is_paid(self, invoice, order, clock):
        clock.advance(days=2)
        assert (result("close"), result("follow")) == ("retryable", "retryable")

        emit("order.paid", order)
        clock.run_due()

        assert (result("close"), result("follow")) == ("closed", "retryable")

    def test_is_taken_back_with_its_order(self, invoice, order, clock):
        clock.advance(days=2)
        emit("order.paid", order)
        emit("order.returned", order)

        clock.run_due()

        assert (result("close"), result("follow")) == ("closed", "taken back")

    def test_is_reminded_of_and_kept_if_nothing_comes(self, invoice, clock):
        clock.advance(days=32)

        assert (result("close"), result("follow")) == ("reminded", "kept")

    def test_is_not_closed_by_another_order(self, invoice, clock):
        clock.advance(days=2)
        emit("order.paid", Order.objects.create())
        clock.run_due()

        assert result("close") == "retryable"

    def test_that_is_withdrawn_in_the_transaction_of_the_payment_is_not_closed(self, invoice, order, clock):
        """The host ends the one, then emits on the other, in whichever order it likes."""
        clock.advance(days=2)
        with transaction.atomic():
            emit("order.paid", order)
            emit("invoice.withdrawn", invoice)
        clock.run_due()

        assert (result("close"), result("follow")) == ("cancelled", "cancelled")
        assert not Wake.objects.exists()


class TestWhatPeopleSee:
    def test_is_whose_event_it_waits_for(self, invoice, order, clock):
        """On the page, in the API and in its story: the order, not the invoice."""
        clock.run_due()
        row = ScheduledTask.objects.get(task_key="collecting.close")
        boss = User.objects.create(
            email="boss@example.com",
            signed_up_at=clock.now,
            trial_ends_at=clock.now,
            is_staff=True,
            is_superuser=True,
        )
        client = Client()
        client.force_login(boss)

        page = client.get(f"/admin/timeline/scheduledtask/{row.pk}/change/").content.decode()
        shown = client.get(f"/api/v1/tasks/{row.pk}/").json()

        assert f"<dd>testapp.order {order.pk}</dd>" in page
        assert shown["wait"]["entity"] == {"label": "testapp.order", "id": str(order.pk)}
        assert f"waits for order.paid of testapp.order {order.pk} until" in shown["explanation"]
