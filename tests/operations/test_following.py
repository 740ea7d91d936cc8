"""Follow an entity: what an inserted, saved or deleted row means for its runs."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.testapp.models import Order, Parcel
from timeline import Timeline, after, at, created, task
from timeline.exceptions import DateOutOfRange
from timeline.lifecycle import State
from timeline.models import ScheduledTask, TimelineRun, ref_of
from timeline.operations.follow import entity_created, entity_deleted, entity_saved
from timeline.testing import autostart, only_timelines


class Delivery(Timeline):
    entity = "testapp.Order"
    starts_on = (created(), "order.placed")

    @task(at("ships_at"))
    def ship(self, order):
        return None

    @task(after(days=1))
    def pack(self, order):
        return None

    @task()
    def call(self, order):
        return None


@pytest.fixture
def order(db, now, later):
    """An order that no timeline has seen being made."""
    with only_timelines():
        return Order.objects.create(ships_at=later)


@pytest.fixture(autouse=True)
def _only_these(order):
    with only_timelines(Delivery):
        yield


class TestEntityCreated:
    def test_starts_the_runs_that_start_so(self, order, now, later):
        entity_created(entity=order, now=now, using="default")

        run = TimelineRun.objects.get()
        assert (run.timeline, run.started_at, run.started_by, run.entity_ref) == ("delivery", now, None, ref_of(order))
        assert {row.scheduled_at for row in ScheduledTask.objects.all()} == {later}

    def test_starts_none_of_what_is_not_there_any_more(self, order, now):
        """Another receiver may have deleted it."""
        ref = ref_of(order)
        with only_timelines():
            order.delete()

        entity_created(entity=ref, now=now, using="default")

        assert not TimelineRun.objects.exists()

    def test_starts_none_when_autostart_is_off(self, order, now):
        with autostart(False):
            entity_created(entity=order, now=now, using="default")

        assert not TimelineRun.objects.exists()

    def test_starts_none_that_start_on_events_only(self, order, now):
        class Other(Timeline):
            entity = "testapp.Order"
            starts_on = "order.placed"

            @task(after(days=1))
            def work(self, order):
                return None

        with only_timelines(Other):
            entity_created(entity=order, now=now, using="default")

        assert not TimelineRun.objects.exists()

    def test_starts_none_of_another_kind_of_entity(self, now, clock):
        entity_created(entity=Parcel.objects.create(), now=now, using="default")

        assert not TimelineRun.objects.exists()

    def test_starts_a_run_once_with_an_event_that_says_the_same(self, order, now, emit_at):
        entity_created(entity=order, now=now, using="default")

        assert emit_at("order.placed", order, now).started == ()


class TestEntitySaved:
    @pytest.fixture(autouse=True)
    def _started(self, order, start_at, now):
        start_at("delivery", order, now)

    def save(self, order, now, fields, **columns):
        Order.objects.update(**columns)
        entity_saved(refs=[ref_of(order)], fields=fields, now=now, using="default")
        return ScheduledTask.objects.get(task_key="delivery.ship", revision=1)

    @pytest.mark.parametrize("fields", [None, {"ships_at"}, {"ships_at", "note"}], ids=str)
    def test_moves_the_rows_with_the_field(self, order, now, later, fields):
        row = self.save(order, now, fields, ships_at=later + timedelta(days=3))

        assert row.scheduled_at == later + timedelta(days=3)

    @pytest.mark.parametrize("fields", [{"note"}, set()], ids=str)
    def test_asks_nothing_when_no_anchor_was_saved(self, order, now, later, fields, django_assert_num_queries):
        with django_assert_num_queries(0):
            entity_saved(refs=[ref_of(order)], fields=fields, now=now, using="default")

        assert self.save(order, now, fields, ships_at=later + timedelta(days=3)).scheduled_at == later

    def test_reads_the_field_as_it_is_stored(self, order, now, later):
        """What the instance holds but did not save means nothing."""
        order.ships_at = later + timedelta(days=9)

        assert self.save(order, now, None, ships_at=later + timedelta(days=3)).scheduled_at == later + timedelta(days=3)

    def test_leaves_other_entities_alone(self, order, now, later, start_at):
        with only_timelines():
            other = Order.objects.create(ships_at=later)
        start_at("delivery", other, now)
        Order.objects.update(ships_at=later + timedelta(days=3))

        entity_saved(refs=[ref_of(other)], fields=None, now=now, using="default")

        assert ScheduledTask.objects.for_entity(order).get(task_key="delivery.ship").scheduled_at == later

    def test_leaves_runs_that_have_ended(self, order, now, later):
        TimelineRun.objects.update(ended_at=now, end_reason="closed")

        assert self.save(order, now, None, ships_at=later + timedelta(days=3)).scheduled_at == later

    def test_refuses_a_date_out_of_range(self, order, now, later):
        with pytest.raises(DateOutOfRange, match="ships_at"):
            self.save(order, now, None, ships_at=datetime(9001, 1, 1, tzinfo=UTC))

        assert ScheduledTask.objects.get(task_key="delivery.ship").scheduled_at == later


class TestEntityDeleted:
    def test_ends_its_runs_and_cancels_its_tasks(self, order, now, start_at, schedule_at):
        start_at("delivery", order, now)
        schedule_at("delivery.call", order, now, now)

        entity_deleted(ref=ref_of(order), now=now, using="default")

        run = TimelineRun.objects.get()
        assert (run.ended_at, run.end_reason) == (now, "the entity was deleted")
        rows = ScheduledTask.objects.all()
        assert {(row.state, row.reason_code) for row in rows} == {(State.CANCELLED, "entity_gone")}
        assert len(rows) == 3

    def test_leaves_other_entities_alone(self, order, now, start_at, schedule_at):
        with only_timelines():
            other = Order.objects.create()
        start_at("delivery", other, now)
        schedule_at("delivery.call", other, now, now)

        entity_deleted(ref=ref_of(order), now=now, using="default")

        assert TimelineRun.objects.get().is_open
        assert ScheduledTask.objects.open().count() == 2

    def test_leaves_what_has_ended_as_its_history(self, order, now, later, start_at, run_at):
        start_at("delivery", order, now)
        done = run_at(ScheduledTask.objects.get(task_key="delivery.pack"), later)

        entity_deleted(ref=ref_of(order), now=later, using="default")

        done.refresh_from_db()
        assert (done.state, done.reason_code) == (State.COMPLETED, "done")


class Abroad(Timeline):
    """Counts days on the wall clock of the order's own zone."""

    entity = "testapp.Order"
    time_zone = "zone"

    @task(after(days=30))
    def call(self, order): ...


class TestTimeZoneOfTheEntity:
    @pytest.mark.parametrize("fields", [None, ["zone"]])
    def test_is_followed_on_save(self, start_at, order, fields):
        """30 days over the change to summer time: an hour less in Berlin than in UTC."""
        begin = datetime(2026, 3, 10, 9, tzinfo=UTC)
        with only_timelines(Abroad):
            start_at("abroad", order, begin)

            order.zone = "Europe/Berlin"
            order.save(update_fields=fields)

        assert ScheduledTask.objects.get().scheduled_at == datetime(2026, 4, 9, 8, tzinfo=UTC)
