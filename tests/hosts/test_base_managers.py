"""Base managers of the host that join, annotate, aggregate or deduplicate: rows can be read through them, and not locked."""

from __future__ import annotations

import pytest
from django.db import models, transaction
from django.db.models import Count, F, Window
from django.db.models.functions import RowNumber

from tests.testapp.models import Invoice, Order
from timeline import Timeline, after, created, task
from timeline.features.sweep.verbs import begin_round, sweep
from timeline.lifecycle import State
from timeline.models import ScheduledTask, TimelineRun, ref_of
from timeline.shortcuts import emit, reconcile, what_if
from timeline.store.locks import lock_entities, lock_rows, lock_statement
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

MANAGERS = {
    "joins": lambda rows: rows.select_related("order"),
    "annotates": lambda rows: rows.annotate(note=F("order__note")),
    "aggregates": lambda rows: rows.annotate(reminders=Count("reminder")),
    "numbers": lambda rows: rows.annotate(number=Window(RowNumber(), order_by="pk")),
    "deduplicates": lambda rows: rows.distinct(),
}


class Dunning(Timeline):
    entity = "testapp.Invoice"
    starts_on = created()
    exits = {"invoice.paid": "paid"}

    @task(after(days=1))
    def remind(self, invoice):
        return type(invoice).__name__


@pytest.fixture(params=MANAGERS.values(), ids=MANAGERS)
def _manager(request, monkeypatch, clock):
    """Invoices have such a base manager."""

    class Joining(models.Manager):
        def get_queryset(self):
            return request.param(super().get_queryset())

    manager = Joining()
    manager.model, manager.name = Invoice, "objects"
    monkeypatch.setitem(vars(Invoice._meta), "base_manager", manager)
    lock_statement.cache_clear()
    with only_timelines(Dunning):
        yield
    lock_statement.cache_clear()


@pytest.mark.usefixtures("_manager")
class TestABaseManagerThatCannotLock:
    def test_lets_everything_be_done(self, clock):
        invoice, other = Invoice.objects.create(), Invoice.objects.create(order=Order.objects.create())

        assert what_if(invoice, event="invoice.paid")
        reconcile(invoice)
        begin_round(using="default")
        while sweep(now=clock.now, using="default").left:
            pass
        emit("invoice.paid", other)
        clock.advance(days=2)

        assert TimelineRun.objects.filter(end_reason="paid").count() == 1
        assert ScheduledTask.objects.get(state=State.COMPLETED).result == "Invoice"

    def test_is_read_after_the_lock(self):
        refs = [ref_of(Invoice.objects.create()) for _ in range(2)]

        with transaction.atomic():
            assert set(lock_entities(refs, using="default")) == set(refs)
            assert lock_rows(refs, using="default").refs == set(refs)
