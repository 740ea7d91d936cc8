"""Story time where nobody gives it: the database's clock, read in the trip that locks the entity."""

from datetime import timedelta

import pytest

from tests.operations.many import Delivery
from tests.testapp.models import Order, Parcel
from timeline import Timeline, after, task
from timeline.clocks import story_now, story_time
from timeline.exceptions import WrongEntity
from timeline.lifecycle import Reason
from timeline.models import EntityRef, Event, ScheduledTask
from timeline.operations import cancel
from timeline.operations import emit as operations_emit
from timeline.shortcuts import cancel_all, emit, leave, schedule, start
from timeline.testing import only_timelines

DAY = timedelta(days=1)


class Arrival(Timeline):
    """Reads nothing of its entity."""

    entity = "testapp.Order"
    starts_on = "order.sent"

    @task(after(days=1))
    def track(self, order):
        return None


class Tour(Timeline):
    """About a model with a parent, whose rows are locked by Django."""

    entity = "testapp.Parcel"
    starts_on = "order.sent"

    @task(after(days=1))
    def track(self, parcel):
        return None


class Sweep(Timeline):
    starts_on = "order.sent"

    @task(after(days=1))
    def sweep(self):
        return None


@pytest.fixture(autouse=True)
def _only_these(db):
    with only_timelines(Delivery, Arrival, Tour, Sweep):
        yield


@pytest.fixture(params=[Order, Parcel], ids=["locked by us", "locked by Django"])
def entity(request):
    return request.param.objects.create()


@pytest.fixture
def between():
    """Do something, and see that it happened at the time it tells."""

    def see(verb, told):
        before = story_now("default")
        done = verb()
        assert before <= told(done) <= story_now("default")
        return done

    return see


class TestTheClockOfTheDatabase:
    def test_is_what_emit_records(self, entity, between):
        emission = between(lambda: emit("order.sent", entity), lambda done: done.event.recorded_at)

        assert emission.event.occurred_at == emission.started[0].started_at == emission.event.recorded_at
        assert ScheduledTask.objects.get().scheduled_at == emission.event.recorded_at + DAY
        assert Event.objects.get().recorded_at == emission.event.recorded_at

    def test_is_when_a_run_starts_and_is_left(self, entity, between):
        name = "arrival" if isinstance(entity, Order) else "tour"

        between(lambda: start(name, entity), lambda done: done.run.started_at)
        between(lambda: leave(name, entity, reason="enough"), lambda run: run.ended_at)

    def test_is_when_a_task_is_made_and_called_off(self, entity, between):
        key, later = "arrival.track" if isinstance(entity, Order) else "tour.track", story_now("default") + DAY

        between(lambda: schedule(key, entity, at=later), lambda done: done.task.created_at)
        between(lambda: cancel_all(entity, reason="enough"), lambda tasks: tasks[0].finished_at)

    def test_is_what_the_system_goes_by(self, between):
        between(lambda: emit("order.sent"), lambda done: done.event.recorded_at)
        assert between(lambda: cancel_all(None, reason="enough"), lambda tasks: tasks[0].finished_at)

    @pytest.mark.only_postgresql
    @pytest.mark.parametrize(("name", "trips"), [("order.sent", 2), ("order.placed", 3)], ids=["none", "a field"])
    def test_is_read_with_the_lock_unless_something_of_the_entity_is(self, name, trips, django_assert_num_queries):
        order = Order.objects.create()

        with django_assert_num_queries(trips):
            assert len(emit(name, order).started) == 1

    def test_is_not_the_time_where_another_is_told(self, entity, now):
        with story_time(lambda: now):
            emission = emit("order.sent", entity)

        assert emission.event.recorded_at == emission.started[0].started_at == now


class TestAnEntityThatIsGone:
    @pytest.mark.parametrize("label", ["testapp.order", "testapp.parcel"])
    def test_is_refused(self, label):
        said = {"name": "order.sent", "key": "", "payload": {}, "actor": "", "occurred_at": None}

        with pytest.raises(WrongEntity, match="is not in the database"):
            operations_emit.emit(entity=EntityRef(label, "4711"), using="default", **said)
        assert not Event.objects.exists()

    def test_can_be_called_off(self, entity):
        key = "arrival.track" if isinstance(entity, Order) else "tour.track"
        row = schedule(key, entity, at=story_now("default") + DAY).task
        ref = row.entity_ref
        type(entity).objects.filter(pk=entity.pk)._raw_delete("default")

        assert cancel.cancel_all(ref=ref, reason=Reason.operator("gone", "ada"), using="default") == [row]
