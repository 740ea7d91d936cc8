"""Reconcile: the rows of a run become what its definition wants; asked twice, the second time changes nothing."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from tests.testapp.models import Order
from timeline import Timeline, after, at, before, task
from timeline.dispatch.poll import stage
from timeline.exceptions import DateOutOfRange
from timeline.lifecycle import Reason, ReasonCode, State
from timeline.models import LogEntry, ScheduledTask, TimelineRun, ref_of
from timeline.models.entities import Entities
from timeline.operations.cancel import cancel
from timeline.operations.reconcile import reconcile, reconcile_locked
from timeline.store.locks import lock_entities
from timeline.testing import only_timelines


class Delivery(Timeline):
    entity = "testapp.Order"
    exits = {"order.closed": "closed"}
    time_zone = "zone"

    @task(before("ships_at", days=1), expires=timedelta(hours=6))
    def pack(self, order):
        return None

    @task(at("ships_at"))
    def ship(self, order):
        return None

    @task(after(ship, days=2))
    def ask(self, order):
        return None

    @task(after(ask, days=1))
    def thank(self, order):
        return None

    @task(at("due_on"))
    def bill(self, order):
        return None


@pytest.fixture(autouse=True)
def _only_these(db):
    with only_timelines(Delivery):
        yield


@pytest.fixture
def ships_at(now):
    return now + timedelta(days=10)


@pytest.fixture
def started(order, ships_at, start_at, now):
    """A run whose order ships in ten days."""
    Order.objects.update(ships_at=ships_at)
    return start_at("delivery", order, now).run


def reconciled(order, now):
    reconcile(entity=order, now=now, using="default")
    return {(row.task_name, row.revision): row for row in ScheduledTask.objects.all()}


class TestReconcile:
    def test_changes_nothing_the_second_time(self, started, order, now):
        before_it = list(ScheduledTask.objects.values().order_by("pk"))

        reconciled(order, now)

        assert list(ScheduledTask.objects.values().order_by("pk")) == before_it
        assert LogEntry.objects.count() == 0

    def test_moves_waiting_rows_with_their_anchor(self, started, order, now, ships_at):
        Order.objects.update(ships_at=ships_at + timedelta(days=5))

        rows = reconciled(order, now)

        pack = rows["pack", 1]
        assert (pack.state, pack.scheduled_at) == (State.SCHEDULED, ships_at + timedelta(days=4))
        assert (pack.nominal_at, pack.anchor_value) == (pack.scheduled_at, ships_at + timedelta(days=5))
        assert pack.expires_at == pack.nominal_at + timedelta(hours=6)
        assert pack.log.get().reason_code == "moved"
        assert len(rows) == 2

    def test_makes_a_row_that_is_moved_into_the_past_due(self, started, order, now):
        Order.objects.update(ships_at=now - timedelta(hours=1))

        rows = reconciled(order, now)

        assert {row.scheduled_at for row in rows.values()} == {
            now - timedelta(hours=1),
            now - timedelta(days=1, hours=1),
        }
        assert stage(now=now, using="default") == 2

    def test_puts_the_next_revision_in_place_of_a_row_that_is_due(self, started, order, now, ships_at):
        stage(now=ships_at, using="default")
        Order.objects.update(ships_at=ships_at + timedelta(days=5))

        rows = reconciled(order, ships_at)

        first, second = rows["ship", 1], rows["ship", 2]
        assert (first.state, first.reason_code) == (State.CANCELLED, "superseded")
        assert (second.state, second.previous) == (State.SCHEDULED, first)
        assert second.scheduled_at == ships_at + timedelta(days=5)

    def test_makes_the_row_once_its_anchor_is_set(self, started, order, now):
        assert not ScheduledTask.objects.filter(task_key="delivery.bill").exists()
        Order.objects.update(due_on=datetime(2026, 4, 1, tzinfo=UTC).date(), zone="Europe/Berlin")

        bill = reconciled(order, now)["bill", 1]

        assert bill.scheduled_at == datetime(2026, 4, 1, tzinfo=ZoneInfo("Europe/Berlin"))

    def test_cancels_a_row_whose_anchor_is_not_set_any_more_and_makes_it_again(self, started, order, now, ships_at):
        Order.objects.update(ships_at=None)
        first = reconciled(order, now)["ship", 1]
        assert (first.state, first.reason_code) == (State.CANCELLED, "superseded")
        assert TimelineRun.objects.get().is_open

        Order.objects.update(ships_at=ships_at)
        second = reconciled(order, now)["ship", 2]

        assert (second.state, second.scheduled_at, second.previous) == (State.SCHEDULED, ships_at, first)

    def test_arms_again_what_completed_when_its_anchor_has_a_new_time(self, started, order, run_at, ships_at):
        row = ScheduledTask.objects.get(task_key="delivery.ship")
        run_at(row, ships_at)
        Order.objects.update(ships_at=ships_at + timedelta(days=30))

        rows = reconciled(order, ships_at)

        assert rows["ship", 2].scheduled_at == ships_at + timedelta(days=30)
        assert (rows["ask", 1].state, rows["ask", 1].reason_code) == (State.CANCELLED, "superseded")

    def test_does_not_arm_again_for_a_time_that_has_passed(self, started, order, run_at, ships_at):
        run_at(ScheduledTask.objects.get(task_key="delivery.ship"), ships_at)
        Order.objects.update(ships_at=ships_at - timedelta(days=3))

        assert ("ship", 2) not in reconciled(order, ships_at)

    def test_does_not_bring_back_what_an_operator_cancelled(self, started, order, now, ships_at):
        row = ScheduledTask.objects.get(task_key="delivery.ship")
        cancel(task_ids=[row.pk], reason=Reason.operator("no", "ada"), now=now, using="default")
        Order.objects.update(ships_at=ships_at + timedelta(days=5))

        rows = reconciled(order, now)

        assert ("ship", 2) not in rows

    def test_keeps_the_time_an_operator_gave_until_the_anchor_changes(self, started, order, now, ships_at):
        ScheduledTask.objects.filter(task_key="delivery.ship").update(scheduled_at=now + timedelta(hours=1))
        assert reconciled(order, now)["ship", 1].scheduled_at == now + timedelta(hours=1)

        Order.objects.update(ships_at=ships_at + timedelta(days=5))

        assert reconciled(order, now)["ship", 1].scheduled_at == ships_at + timedelta(days=5)

    def test_leaves_out_what_follows_until_it_does(self, started, order, now, run_at, ships_at):
        assert {name for name, _revision in reconciled(order, now)} == {"pack", "ship"}

        run_at(ScheduledTask.objects.get(task_key="delivery.ship"), ships_at)

        assert ("ask", 1) in reconciled(order, ships_at)
        assert ("thank", 1) not in reconciled(order, ships_at)

    def test_follows_a_changed_definition(self, started, order, now, ships_at):
        class Changed(Timeline):
            name = "delivery"
            entity = "testapp.Order"

            @task(before("ships_at", days=3))
            def pack(self, order):
                return None

            @task(at("ships_at"))
            def send(self, order):
                return None

        with only_timelines(Changed):
            rows = reconciled(order, now)

        assert (rows["pack", 1].state, rows["pack", 1].scheduled_at) == (State.SCHEDULED, ships_at - timedelta(days=3))
        assert (rows["ship", 1].state, rows["ship", 1].reason_code) == (State.SCHEDULED, "")
        assert rows["send", 1].scheduled_at == ships_at

    def test_leaves_the_runs_of_an_unknown_timeline_alone(self, started, order, now, ships_at):
        Order.objects.update(ships_at=ships_at + timedelta(days=5))

        with only_timelines():
            rows = reconciled(order, now)

        assert rows["ship", 1].scheduled_at == ships_at
        assert TimelineRun.objects.get().is_open

    @pytest.mark.parametrize("gone", [False, True], ids=["there", "gone"])
    def test_leaves_the_runs_alone_of_a_timeline_that_is_about_another_model_now(
        self, started, order, now, ships_at, gone
    ):
        """As after a rename: what a run is about only looks as if it were gone, or as if it were something else."""

        class OfUsers(Timeline):
            name = "delivery"
            entity = "accounts.User"

            @task(after(days=1))
            def greet(self, user):
                return None

        ref = ref_of(order)
        if gone:
            Order.objects.all()._raw_delete("default")
        with only_timelines(OfUsers):
            rows = reconciled(ref, now)

        assert rows["ship", 1].scheduled_at == ships_at
        assert TimelineRun.objects.get().is_open
        assert not LogEntry.objects.exists()

    def test_leaves_runs_that_have_ended_alone(self, started, order, now, ships_at):
        TimelineRun.objects.update(ended_at=now, end_reason="closed")
        Order.objects.update(ships_at=ships_at + timedelta(days=5))

        assert reconciled(order, now)["ship", 1].scheduled_at == ships_at

    def test_ends_the_runs_of_an_entity_that_is_gone(self, started, order, now):
        ref = ref_of(order)
        Order.objects.filter(pk=order.pk)._raw_delete("default")
        Order.objects.create()

        reconciled(ref, now)

        assert TimelineRun.objects.get().end_reason == "the entity was deleted"
        assert {row.reason_code for row in ScheduledTask.objects.all()} == {"entity_gone"}

    def test_leaves_the_runs_of_an_entity_that_may_only_not_be_seen(self, started, order, now):
        """A table that shows nothing proves nothing."""
        ref = ref_of(order)
        Order.objects.all()._raw_delete("default")

        reconciled(ref, now)

        assert TimelineRun.objects.get().is_open
        assert ScheduledTask.objects.open().exists()

    def test_changes_nothing_if_one_field_gives_no_proper_time(self, started, order, now, start_at, ships_at):
        """Two runs of the order: the date is out of range for both, and neither is half done."""
        start_at("delivery", order, now, key="second")
        Order.objects.update(ships_at=datetime(9001, 1, 1, tzinfo=UTC), due_on=None)

        with pytest.raises(DateOutOfRange, match="ships_at"):
            reconciled(order, now)

        assert set(ScheduledTask.objects.values_list("state", flat=True)) == {State.SCHEDULED}
        assert LogEntry.objects.count() == 0

    def test_lets_a_run_rest_of_which_nothing_is_defined(self, started, order, now):
        class Less(Timeline):
            name = "delivery"
            entity = "testapp.Order"

            @task()
            def on_demand(self, order):
                return None

        before = list(ScheduledTask.objects.order_by("pk").values())
        with only_timelines(Less):
            reconciled(order, now)

        assert TimelineRun.objects.get().is_open
        assert list(ScheduledTask.objects.order_by("pk").values()) == before

    def test_finishes_a_run_of_which_nothing_is_defined_if_a_setting_says_so(self, started, order, now, settings):
        class Less(Timeline):
            name = "delivery"
            entity = "testapp.Order"

            @task()
            def on_demand(self, order):
                return None

        settings.TIMELINE = {**settings.TIMELINE, "CANCEL_UNDEFINED": True}
        with only_timelines(Less):
            rows = reconciled(order, now)

        assert TimelineRun.objects.get().end_reason == "finished"
        assert {row.reason_code for row in rows.values()} == {"definition"}


class TestReconcileLocked:
    def test_is_lenient_with_an_entity_that_gives_no_proper_time(self, started, order, now, run_at, ships_at, caplog):
        """A worker records its outcome whatever the entity holds."""
        row = ScheduledTask.objects.get(task_key="delivery.pack")
        Order.objects.update(due_on=datetime(9001, 1, 1, tzinfo=UTC).date())
        stage(now=ships_at, using="default")

        cancelled = cancel(task_ids=[row.pk], reason=Reason(ReasonCode.OPERATOR), now=now, using="default")

        assert [row.state for row in cancelled] == [State.CANCELLED]
        assert "not reconciled until its entity is mended" in caplog.text

    def test_answers_with_the_rows_it_made(self, order, ships_at, now):
        Order.objects.update(ships_at=ships_at)
        run = TimelineRun.objects.create(
            timeline="delivery", entity_label="testapp.order", entity_id=str(order.pk), started_at=now
        )
        entities = lock_entities([ref_of(order)], using="default")

        made = reconcile_locked([run], entities, now=now, using="default")

        assert set(made) == set(ScheduledTask.objects.all())
        assert len(made) == 2

    def test_asks_as_much_for_a_thousand_runs_as_for_ten(self, now, statements_of, ships_at):
        asked = []
        for count in (10, 1000):
            orders = Order.objects.bulk_create([Order(ships_at=ships_at) for _ in range(count)])
            runs = TimelineRun.objects.bulk_create(
                TimelineRun(timeline="delivery", entity_label="testapp.order", entity_id=str(order.pk), started_at=now)
                for order in orders
            )
            entities = Entities({ref_of(order): order for order in orders})

            def make(runs=runs, entities=entities):
                reconcile_locked(runs, entities, now=now, using="default")

            created = statements_of(make)
            for order in orders:
                order.ships_at = ships_at + timedelta(days=1)
            asked.append([created, statements_of(make)])

        assert asked[0] == asked[1]
        assert ScheduledTask.objects.filter(scheduled_at=ships_at + timedelta(days=1)).count() == 1010
