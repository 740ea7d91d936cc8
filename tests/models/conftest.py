"""What tests of tables share: rows, and the columns that name an entity."""

import pytest

from tests.testapp.models import Country, Order, Parcel
from timeline.models import Event, LogEntry, TimelineRun, ref_of


@pytest.fixture(params=[Order, Parcel, Country], ids=lambda model: model.__name__)
def named(request, db):
    """The columns that name an entity with an integer, a UUID and a string key."""
    entity = Country.objects.create(code="fr") if request.param is Country else request.param.objects.create()
    label, key = ref_of(entity)
    return {"entity_label": label, "entity_id": key}


@pytest.fixture
def make_run(db, now):
    """Make a run: ``make_run(key="a", …)``."""
    return lambda **columns: TimelineRun.objects.create(**{"timeline": "trial", "started_at": now} | columns)


@pytest.fixture
def make_event(db, now):
    """Make an event: ``make_event(key="a", …)``."""
    return lambda **columns: Event.objects.create(
        **{"name": "user.created", "occurred_at": now, "recorded_at": now} | columns
    )


@pytest.fixture
def log(now):
    """Log a step of a task: ``log(task, …)``."""
    columns = {"seq": 1, "at": now, "attempt": 0, "from_state": "scheduled", "to_state": "available"}
    return lambda task, **others: LogEntry.objects.create(task=task, **columns | others)
