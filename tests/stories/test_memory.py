"""What is done with very many rows holds a few for each of a batch, and no more, however many there are."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F, Model

from project.accounts.models import User
from tests.features.bulk_actions.bulk import bulk_action  # of bulk_actions
from tests.testapp.models import Order
from timeline import Timeline, at, task
from timeline.features.bulk_actions import poll  # of bulk_actions
from timeline.features.plans import apply, differ, drift
from timeline.features.plans.apply import apply_choices, check_choices
from timeline.features.plans.differ import differences
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.operations import redrive
from timeline.operations.enroll import foresee_enrolling
from timeline.operations.sets import pages
from timeline.registry import registry
from timeline.shortcuts import enroll, redrive_group
from timeline.store.locks import RowToPlan
from timeline.testing import only_timelines

BATCH = 4
MANY = 12 * BATCH
GROUP = "1" * 16


class Delivery(Timeline):
    entity = "testapp.Order"

    @task(at("ships_at"))
    def ship(self, order: Order) -> None: ...


class Most:
    """The most rows that were held at any statement."""

    def __init__(self) -> None:
        self.rows = 0

    def __call__(self, execute: Callable[..., object], *statement: object) -> object:
        gc.collect()
        self.rows = max(self.rows, sum(isinstance(held, Model | RowToPlan) for held in gc.get_objects()))
        return execute(*statement)


@contextmanager
def counting() -> Iterator[Most]:
    """Count what is held beside what was held before."""
    gc.collect()
    gc.freeze()
    most = Most()
    try:
        with connection.execute_wrapper(most):
            yield most
    finally:
        gc.unfreeze()


@pytest.fixture(autouse=True)
def _story(db, clock, now, monkeypatch):
    clock.set(now)
    for module, name in (
        (apply, "READ"),
        (differ, "SIZE"),
        (redrive, "BATCH"),
        (poll, "BATCH"),  # of bulk_actions
        (drift, "PLANNED"),
    ):
        monkeypatch.setattr(module, name, BATCH)
    with only_timelines(Delivery):
        yield


def orders(count, now):
    Order.objects.bulk_create(Order(ships_at=now + timedelta(days=5)) for _ in range(count))


def drifted(count, now):
    orders(count, now)
    enroll(Delivery, Order.objects.all())
    Order.objects.update(ships_at=F("ships_at") + timedelta(days=1))


def failed(count, now):
    orders(count, now)
    enroll(Delivery, Order.objects.all())
    for row in ScheduledTask.objects.all():
        ScheduledTask.objects.filter(pk=row.pk).delete()
        row.state, row.finished_at, row.reason_code, row.fingerprint = State.DISCARDED, now, "error", GROUP
        row.save(force_insert=True)


def enrolled(now):
    assert enroll(Delivery, Order.objects.all(), batch_size=BATCH).started


def enrolled_ahead(now):
    batches = pages(Order.objects.all(), Order, BATCH, using="default")
    for ahead in foresee_enrolling(
        timeline="delivery", batches=batches, started_at=None, once=True, clock=lambda _: now
    ):
        assert ahead.runs


def planned(now):
    for found in differences([registry.timeline("delivery")], now=now, using="default"):
        assert found["delivery"].changed


def applied(now):
    choices = check_choices(registry.timeline("delivery"))
    assert all(some.rows for some in apply_choices(choices, size=BATCH, clock=lambda _: now, using="default"))


def redriven(now):
    assert redrive_group(GROUP, reason="mended").redriven


def redriven_in_bulk(now):  # of bulk_actions
    staff = User.objects.create(
        email="ada@example.com", is_staff=True, is_superuser=True, signed_up_at=now, trial_ends_at=now
    )
    bulk = bulk_action("redrive", asker=staff.pk, filters={"group": GROUP})
    poll.begin_bulk(bulk, ScheduledTask.objects.all(), using="default")
    while poll.act_in_bulk(now=now, using="default"):
        pass
    bulk.refresh_from_db()
    assert bulk.done == bulk.matched


@pytest.mark.parametrize(
    ("make", "act", "bound"),
    [
        pytest.param(orders, enrolled, 3, id="enroll"),
        pytest.param(orders, enrolled_ahead, 3, id="enroll ahead"),
        pytest.param(drifted, planned, 6, id="plan"),
        pytest.param(drifted, applied, 8, id="apply"),
        pytest.param(failed, redriven, 8, id="redrive a group"),
        pytest.param(failed, redriven_in_bulk, 10, id="redrive in bulk"),  # of bulk_actions
    ],
)
def test_holds_a_few_rows_for_each_of_a_batch_and_no_more(make, act, bound, now):
    make(MANY, now)

    with counting() as most:
        act(now)

    assert BATCH <= most.rows <= bound * BATCH < MANY
