"""What tests of the demo's billing share: its timelines, those whom it calls, and what is to be settled."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from project.billing import timelines
from project.billing.models import Customer, Payment, Transaction
from project.demo.outside import Outside
from timeline.engine.groups import run_begun
from timeline.hooks import hooks
from timeline.testing import StoryClock, only_timelines
from timeline.timelines import Alerts

ALL = [getattr(timelines, name) for name in timelines.__all__]
BY_EVENTS = [known for known in ALL if all(isinstance(start, str) for start in known.definition.starts_on)]
MONDAY = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)


@pytest.fixture
def outside(settings):
    """Those whom billing calls, in a thread; nothing goes wrong with them unless a test says so."""
    with Outside().answering() as outside:
        settings.BILLING_OUTSIDE = outside.url
        yield outside


@pytest.fixture
def billing(transactional_db, settings, tmp_path, outside, request):
    """Monday, noon in Greenwich; all of billing is known, or what the class says; documents go into a folder of the test."""
    known = getattr(request.cls, "known", ALL)
    documents = {**settings.STORAGES["documents"]}
    documents["OPTIONS"] = {**documents["OPTIONS"], "location": tmp_path / "documents"}
    settings.STORAGES = {**settings.STORAGES, "documents": documents}
    with only_timelines(Alerts, *known), StoryClock(MONDAY) as clock:
        yield clock


@pytest.fixture
def customer(billing):
    """A customer of whom no event tells."""
    return Customer.objects.create(name="Ada", email="ada@example.com", joined_at=billing.now)


@pytest.fixture
def payment(customer):
    """What she is to pay."""
    return Payment.objects.create(customer=customer, cents=2900, created_at=customer.joined_at)


def transactions(count, at):
    """So many that are to be paid out, a cent more each."""
    rows = [Transaction(account="DE89", cents=100 + number, created_at=at) for number in range(count)]
    return Transaction.objects.bulk_create(rows)


def settle(clock):
    """Run the settlement that is available, as a worker does: if it gets the one place there is."""
    ready = dict(group for source in hooks().sources for group in source.groups(None, using="default"))
    begin = ready.get("settlement.settle", lambda **_options: [])
    attempts = begin(most=1, worker="mortal", retried=True, now=clock(), using="default")
    return run_begun(attempts, clock=clock, using="default") if attempts else []


def at_night(clock):
    """The next two o'clock in the morning in Berlin, in winter."""
    tonight = clock.now.replace(hour=1, minute=0, second=0, microsecond=0)
    return tonight if clock.now < tonight else tonight + timedelta(days=1)
