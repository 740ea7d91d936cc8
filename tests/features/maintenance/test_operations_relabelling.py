"""Relabel: rows follow a model that has another label now."""

from datetime import timedelta

import pytest
from django.db import connection, migrations
from django.db.migrations.state import ProjectState

from tests.testapp.models import Account, Order
from timeline import Timeline, after, task, wait_for
from timeline.exceptions import InvalidInput, LabelsCollide
from timeline.features.maintenance import relabel as maintenance_relabel
from timeline.features.maintenance.relabel import Relabelled, relabel
from timeline.lifecycle import Reason
from timeline.models import BulkAction, EntityRef, Event, Hold, ScheduledTask, StepRecord, TimelineRun
from timeline.operations.cancel import cancel
from timeline.testing import autostart, only_timelines

OLD, NEW = "shop.order", "testapp.order"


class Delivery(Timeline):
    entity = "testapp.Order"
    starts_on = "order.placed"

    @task(after(days=1))
    def pack(self, order):
        return None

    @task(after(days=2))
    def ship(self, order):
        return None

    @task()
    def call(self, order):
        return None


@pytest.fixture(autouse=True)
def _only_these(db):
    with only_timelines(Delivery):
        yield


@pytest.fixture
def old_order(order, now, emit_at, schedule_at):
    """An order whose rows still have the old label: an event, a run of two tasks, an ad hoc task."""
    emit_at("order.placed", order, now, key="placed")
    schedule_at("delivery.call", order, now, now, key="call")
    for model in (Event, TimelineRun, ScheduledTask):
        model.objects.update(entity_label=OLD)
    return order


class TestBulkActions:  # of bulk_actions
    def test_go_on_with_what_they_are_about(self, old_order, now):
        columns = {"action": "cancel", "reason": "x", "asker": "1", "created_at": now + timedelta(days=1)}
        running = BulkAction.objects.create(filters={"kind": OLD, "state": ["scheduled"]}, **columns)
        over = BulkAction.objects.create(filters={"kind": OLD}, ended_at=now, **columns)

        relabel(old=OLD, new=NEW, using="default")

        running.refresh_from_db()
        over.refresh_from_db()
        assert running.filters == {"kind": NEW, "state": ["scheduled"]}
        assert running.narrow(ScheduledTask.objects.all()).count() == 2
        assert over.filters == {"kind": OLD}  # What was asked for then.


class TestHolds:
    def test_follow(self, old_order, now):
        """What is on hold stays so, by its new name."""
        names = [["shop.customer", "7"], [OLD, str(old_order.pk)]]
        columns = {"scope": "entity", "entity_id": str(old_order.pk), "names": names, "reason": "x", "created_at": now}
        held = Hold.objects.create(entity_label=OLD, **columns)

        relabel(old=OLD, new=NEW, using="default")

        held.refresh_from_db()
        assert held.entity_label == NEW
        assert held.names == [["shop.customer", "7"], [NEW, str(old_order.pk)]]
        assert not ScheduledTask.objects.all().not_of_held_entities().exists()


class Waiting(Timeline):
    """One task waits by its schedule, the other in its handler."""

    entity = "testapp.Order"

    @task(wait_for("order.paid", within=timedelta(days=3)))
    def thank(self, order):
        return self.awaited.name if self.awaited else "nothing"

    @task(after(), atomic=False)
    def ask(self, order):
        given = self.wait_for("order.paid", within=timedelta(days=3))
        return given.name if given else "nothing"


class TestWhatWaits:
    @pytest.mark.parametrize("name", ["thank", "ask"])
    def test_is_waked_by_the_new_name_and_finds_the_event(self, order, now, start_at, run_at, emit_at, name):
        """An event that is recorded after the model was renamed ends a wait that began before."""
        with only_timelines(Waiting):
            start_at("waiting", order, now)
            row = ScheduledTask.objects.get(task_key=f"waiting.{name}")
            run_at(row, now)
            for model in (TimelineRun, ScheduledTask):
                model.objects.update(entity_label=OLD)
            ScheduledTask.objects.exclude(awaits="").update(awaits_label=OLD)
            for record in StepRecord.objects.filter(kind="wait"):
                StepRecord.objects.filter(pk=record.pk).update(place=record.place | {"of": [OLD, str(order.pk)]})

            relabel(old=OLD, new=NEW, using="default")
            emit_at("order.paid", order, now + timedelta(hours=1))

            row.refresh_from_db()
            assert row.state == "available"
            assert run_at(row, now + timedelta(hours=1)).result == "order.paid"


def labels():
    return {
        label
        for model in (Event, TimelineRun, ScheduledTask)
        for label in model.objects.values_list("entity_label", flat=True)
    }


class TestRelabel:
    def test_gives_every_row_the_new_label(self, old_order):
        done = relabel(old=OLD, new=NEW, using="default")

        assert done == Relabelled(events=1, runs=1, tasks=3)
        assert labels() == {NEW}
        assert ScheduledTask.objects.for_entity(old_order).count() == 3

    def test_lets_the_tasks_run(self, old_order, run_at, now):
        row = ScheduledTask.objects.get(task_key="delivery.pack")
        relabel(old=OLD, new=NEW, using="default")

        assert run_at(row, now + timedelta(days=1)).state == "completed"

    def test_relabels_what_has_ended_too(self, old_order, now):
        row = ScheduledTask.objects.get(task_key="delivery.call")
        cancel(task_ids=[row.pk], reason=Reason.operator("no"), now=now, using="default")

        relabel(old=OLD, new=NEW, using="default")

        row.refresh_from_db()
        assert (row.state, row.entity_label) == ("cancelled", NEW)

    def test_takes_labels_as_people_write_them(self, old_order):
        assert relabel(old="shop.Order", new="testapp.Order", using="default").runs == 1

    def test_leaves_rows_of_other_labels(self, old_order, now, schedule_at):
        with only_timelines(Delivery):
            schedule_at("delivery.call", Order.objects.create(), now, now)
        Event.objects.update(entity_label="", entity_id="")

        relabel(old=OLD, new="testapp.account", using="default")

        assert labels() == {"", NEW, "testapp.account"}

    def test_does_nothing_twice(self, old_order):
        relabel(old=OLD, new=NEW, using="default")

        assert relabel(old=OLD, new=NEW, using="default") == Relabelled(0, 0, 0)

    def test_changes_no_more_rows_at_a_time_than_its_bound(
        self, old_order, now, schedule_at, monkeypatch, statements_of
    ):
        for number in range(4):
            TimelineRun.objects.create(
                timeline="delivery", key=str(number), entity_label=OLD, entity_id="1", started_at=now
            )
        monkeypatch.setattr(maintenance_relabel, "BATCH", 2)

        statements = statements_of(lambda: relabel(old=OLD, new=NEW, using="default"))

        assert labels() == {NEW}
        assert len([sql for sql in statements if sql.startswith("UPDATE timeline_timelinerun")]) == 3
        assert len([sql for sql in statements if sql.startswith("UPDATE timeline_scheduledtask")]) == 2


class TestRelabelOfWrongInput:
    @pytest.mark.parametrize(
        ("old", "new", "field"),
        [
            ("", NEW, "old"),
            (None, NEW, "old"),
            (OLD, "", "new"),
            (OLD, "shop.purchase", "new"),
            (OLD, "order", "new"),
            (OLD, "testapp.orderproxy", "new"),
            (NEW, "testapp.Order", "new"),
        ],
    )
    def test_changes_nothing(self, old_order, old, new, field):
        with pytest.raises(InvalidInput) as caught:
            relabel(old=old, new=new, using="default")

        assert caught.value.field == field
        assert labels() == {OLD}


class TestRelabelOfBothLabels:
    @pytest.fixture(params=["open runs", "events", "ad hoc tasks"])
    def doubled(self, request, old_order, now, emit_at, start_at, schedule_at):
        """Have a row under the new label that would be the same as one under the old."""
        with autostart(False):
            {
                "open runs": lambda: start_at("delivery", old_order, now),
                "events": lambda: emit_at("order.placed", old_order, now, key="placed"),
                "ad hoc tasks": lambda: schedule_at("delivery.call", old_order, now, now, key="call"),
            }[request.param]()
        return request.param

    def test_changes_nothing_and_says_which(self, doubled, old_order):
        with pytest.raises(LabelsCollide) as caught:
            relabel(old=OLD, new=NEW, using="default")

        assert (caught.value.what, caught.value.ids) == (doubled, [str(old_order.pk)])
        assert TimelineRun.objects.filter(entity_label=OLD).count() == 1
        assert ScheduledTask.objects.filter(entity_label=OLD).count() == 3
        assert Event.objects.filter(entity_label=OLD).count() == 1

    def test_takes_runs_that_have_ended_under_either(self, old_order, now, start_at):
        start_at("delivery", old_order, now)
        TimelineRun.objects.filter(entity_label=NEW).update(ended_at=now, end_reason="closed")

        relabel(old=OLD, new=NEW, using="default")

        assert TimelineRun.objects.for_entity(old_order).count() == 2

    def test_takes_other_entities_under_either(self, old_order, now, start_at):
        start_at("delivery", Order.objects.create(), now)

        assert relabel(old=OLD, new=NEW, using="default").runs == 1


@pytest.mark.django_db(transaction=True)
class TestRelabelInAMigration:
    def migrate(self, *operations):
        """Apply a migration, in the transaction that Django gives it."""
        migration = migrations.Migration("0002_moved", "testapp")
        migration.operations = list(operations)
        with connection.schema_editor(atomic=True) as editor:
            migration.apply(ProjectState(), editor)

    def rows_follow(self, apps, schema_editor):
        relabel(old=OLD, new="testapp.account", using=schema_editor.connection.alias)

    def fail(self, apps, schema_editor):
        raise LookupError("a later step")

    def test_is_committed_with_it(self, old_order):
        account = Account.objects.create(pk=old_order.pk)

        self.migrate(migrations.RunPython(self.rows_follow))

        assert ScheduledTask.objects.for_entity(EntityRef("testapp.account", str(account.pk))).count() == 3

    def test_is_undone_with_it(self, old_order):
        with pytest.raises(LookupError):
            self.migrate(migrations.RunPython(self.rows_follow), migrations.RunPython(self.fail))

        assert labels() == {OLD}
