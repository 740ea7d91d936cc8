"""What tests of the demo's bookings share: the machine, the portal that it books at, and somebody who applies."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from project.demo.office import FRIENDLY, Office
from project.demo.portal import Portal
from project.portal import services
from project.portal.timelines import Booking, Clearing
from timeline.models import TimelineRun
from timeline.testing import StoryClock, only_timelines

MORNING = datetime(2026, 11, 23, 9, 0, tzinfo=UTC)


@pytest.fixture
def bookings(transactional_db):
    """Monday, nine in the morning; only the demo's bookings are known."""
    with only_timelines(Booking, Clearing), StoryClock(MORNING) as clock:
        yield clock


@pytest.fixture
def portal(bookings, settings):
    """The portal, in a thread: it asks nobody for anything, and nothing goes wrong, unless a test says so."""
    with Portal(office=Office(FRIENDLY, seed=1, now=lambda: bookings.now)).answering() as portal:
        settings.PORTAL_URL = portal.url
        yield portal


def wanted(clock, **given):
    """Somebody applies."""
    given = {"name": "Ada", "email": "ada@example.com", "password": "correct horse"} | given
    return services.apply(**given, now=clock.now)


def state_of(booking):
    """Where a booking is, as its run has it."""
    return TimelineRun.objects.get(timeline="booking", entity_id=str(booking.pk)).state


def way_of(booking):
    """The states that it has been in, in order."""
    run = TimelineRun.objects.get(timeline="booking", entity_id=str(booking.pk))
    return list(run.entries.order_by("seq").values_list("to_state", flat=True))
