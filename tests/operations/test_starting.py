"""Start: begin a run by hand, and write the future it holds."""

from datetime import datetime, timedelta
from uuid import UUID

import pytest

from tests.testapp.models import Country, Order, Parcel
from timeline import Timeline, after, at, task
from timeline.exceptions import (
    DateOutOfRange,
    InvalidInput,
    NaiveDatetime,
    NotPlainJSON,
    PayloadTooLarge,
    UnknownTimeline,
    WrongEntity,
)
from timeline.lifecycle import State
from timeline.models import ScheduledTask, TimelineRun
from timeline.testing import autostart, only_timelines


class Delivery(Timeline):
    entity = "testapp.Order"

    @task(after(days=1), priority=3, queue="slow")
    def pack(self, order):
        return None

    @task(after(pack, days=1))
    def ship(self, order):
        return None

    @task(at("ships_at"))
    def bill(self, order):
        return None


class Sweep(Timeline):
    @task(after(days=1))
    def sweep(self):
        return None


def about(model):
    """A timeline about a model."""

    class Any(Timeline):
        name = "any"
        entity = model._meta.label

        @task(after(days=1))
        def one(self, entity):
            return str(entity.pk)

    return Any


@pytest.fixture(autouse=True)
def _only_these(db):
    with only_timelines(Delivery, Sweep):
        yield


class TestStart:
    def test_begins_a_run_with_its_rows(self, start_at, order, now):
        started = start_at("delivery", order, now, params={"n": 1})

        run = TimelineRun.objects.get()
        assert started == (run, True)
        assert (run.started_at, run.params, run.started_by, run.is_open) == (now, {"n": 1}, None, True)
        row = ScheduledTask.objects.get()
        assert (row.task_key, row.run, row.state) == ("delivery.pack", run, State.SCHEDULED)
        assert (row.nominal_at, row.scheduled_at) == (now + timedelta(days=1), now + timedelta(days=1))
        assert (row.anchor, row.anchor_value) == ("start", now)
        assert (row.priority, row.queue, row.revision, row.seq, row.attempt) == (3, "slow", 1, 0, 0)
        assert (row.created_at, row.definition_hash) == (now, Delivery.pack.fingerprint)

    def test_leaves_an_open_run_as_it_is(self, start_at, order, now):
        first = start_at("delivery", order, now)

        again = start_at("delivery", order, now + timedelta(hours=1), params={"n": 2})

        assert again == (first.run, False)
        assert again.run.params == {}
        assert ScheduledTask.objects.count() == 1

    def test_begins_another_for_another_key(self, start_at, order, now):
        start_at("delivery", order, now, key="a")

        assert start_at("delivery", order, now, key="b").created

    def test_begins_another_once_the_first_has_ended(self, start_at, order, now):
        start_at("delivery", order, now)
        TimelineRun.objects.update(ended_at=now, end_reason="closed")

        assert start_at("delivery", order, now).created

    def test_counts_from_the_time_given(self, start_at, order, now):
        start_at("delivery", order, now, started_at=now - timedelta(days=2))

        row = ScheduledTask.objects.get()
        assert (row.scheduled_at, row.state) == (now - timedelta(days=1), State.AVAILABLE)

    def test_works_when_autostart_is_off(self, start_at, order, now):
        with autostart(False):
            assert start_at("delivery", order, now).created

    def test_takes_no_entity_for_a_system_timeline(self, start_at, now):
        start_at("sweep", None, now)

        assert ScheduledTask.objects.get().entity_ref == ("", "")

    @pytest.mark.parametrize("model", [Order, Parcel, Country])
    def test_takes_keys_of_every_kind(self, start_at, run_at, now, model):
        entity = Country.objects.create(code="fr") if model is Country else model.objects.create()

        with only_timelines(about(model)):
            start_at("any", entity, now)
            done = run_at(ScheduledTask.objects.get(), now + timedelta(days=1))

        assert (done.state, done.result) == (State.COMPLETED, str(entity.pk))


class TestStartOfWrongInput:
    @pytest.mark.parametrize(
        ("given", "error"),
        [
            ({"timeline": "nothing"}, UnknownTimeline),
            ({"entity": None}, WrongEntity),
            ({"entity": Parcel(pk=UUID(int=7))}, WrongEntity),
            ({"entity": Order()}, WrongEntity),
            ({"entity": Order(pk=999)}, WrongEntity),
            ({"timeline": "sweep"}, WrongEntity),
            ({"key": "x" * 101}, InvalidInput),
            ({"key": None}, InvalidInput),
            ({"params": {"at": {1, 2}}}, NotPlainJSON),
            ({"params": {"t": "x" * 70_000}}, PayloadTooLarge),
            ({"started_at": datetime(2026, 1, 1)}, NaiveDatetime),  # noqa: DTZ001 (that is the case)
            ({"started_at": datetime.fromisoformat("1960-01-01T00:00:00+00:00")}, DateOutOfRange),
            ({"started_at": datetime.fromisoformat("8999-12-31T20:00:00+00:00")}, DateOutOfRange),
        ],
        ids=str,
    )
    def test_writes_nothing(self, start_at, order, now, given, error):
        given = {"timeline": "delivery", "entity": order} | given

        with pytest.raises(error):
            start_at(given.pop("timeline"), given.pop("entity"), now, **given)

        assert not TimelineRun.objects.exists()
        assert not ScheduledTask.objects.exists()
