"""A task that begins with a wait for an event of another entity: ``@task(wait_for(…, of="order"))``."""

from datetime import timedelta

import pytest

from tests.testapp.models import Invoice, Order, Reminder
from timeline import Timeline, task, wait_for
from timeline.clocks import story_time
from timeline.dispatch.poll import stage
from timeline.engine import finalize
from timeline.exceptions import DefinitionError
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.operations.reconcile import reconcile
from timeline.operations.start import start
from timeline.reading.inventory import inventory
from timeline.registry import registry
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db

THREE_DAYS = timedelta(days=3)


def order_of(invoice):
    return invoice.order


def closing(of="order", model="testapp.Invoice", within=THREE_DAYS, **options):
    class Closing(Timeline):
        entity = model
        starts_on = "invoice.sent"

        @task(wait_for("order.paid", "order.returned", of=of, within=within), **options)
        def close(self, _entity):
            return self.awaited.name if self.awaited else "nothing"

    return Closing


def closing_async():
    class Closing(Timeline):
        entity = "testapp.Invoice"
        starts_on = "invoice.sent"

        @task(wait_for("order.paid", "order.returned", of="order", within=THREE_DAYS), atomic=False)
        async def close(self, _entity):
            return self.awaited.name if self.awaited else "nothing"

    return Closing


@pytest.fixture(params=["atomic", "shared", "plain", "async", "function", "two keys"])
def invoice(request, order, now):
    """What waits for its order, in each way it may be declared."""
    invoice = Invoice.objects.create(order=order)
    cls = {
        "atomic": closing,
        "shared": lambda: closing(atomic="shared"),
        "plain": lambda: closing(atomic=False),
        "async": closing_async,
        "function": lambda: closing(order_of),
        "two keys": lambda: closing("invoice.order", "testapp.Reminder"),
    }[request.param]()
    with only_timelines(cls):
        yield Reminder.objects.create(invoice=invoice) if request.param == "two keys" else invoice


def begun(entity, now):
    start(timeline="closing", entity=entity, key="", params={}, started_at=None, now=now, using="default")
    return ScheduledTask.objects.get()


def state_of(row):
    row.refresh_from_db()
    return row.state, row.reason_code, row.scheduled_at


class TestATaskThatWaits:
    def test_looks_first_and_rests_until_its_deadline(self, invoice, order, now, run_at):
        row = begun(invoice, now)
        assert (row.state, row.nominal_at) == (State.AVAILABLE, now + THREE_DAYS)

        run_at(row, now)

        assert state_of(row) == (State.RETRYABLE, "waiting", now + THREE_DAYS)
        assert (row.awaits, row.awaits_label, row.awaits_id) == (
            "order.paid order.returned",
            "testapp.order",
            str(order.pk),
        )
        assert row.reason == (
            f"waits for order.paid order.returned of testapp.order {order.pk} until 2026-03-04 09:00 UTC"
        )

    def test_begins_so_with_the_event_that_starts_its_run(self, invoice, now, emit_at):
        emit_at("invoice.sent", invoice, now)

        row = ScheduledTask.objects.get()
        assert (row.state, row.scheduled_at, row.nominal_at) == (State.AVAILABLE, now, now + THREE_DAYS)

    def test_is_waked_and_gets_the_event(self, invoice, order, now, later, run_at, emit_at):
        row = begun(invoice, now)
        run_at(row, now)

        emit_at("order.returned", order, later)
        stage(now=later, using="default")

        assert state_of(row)[0] == State.AVAILABLE
        assert run_at(row, later).result == "order.returned"

    def test_gets_what_came_before_it_looked(self, invoice, order, now, later, run_at, emit_at):
        """Between the start of its run and its first look nobody could wake it."""
        row = begun(invoice, now)
        emit_at("order.paid", order, now + timedelta(seconds=1))

        assert run_at(row, later).result == "order.paid"

    def test_is_not_waked_by_its_own_entity(self, invoice, now, later, run_at, emit_at):
        row = begun(invoice, now)
        run_at(row, now)

        emit_at("order.paid", invoice, later)

        assert stage(now=later, using="default") == 0
        assert run_at(row, now + THREE_DAYS).result == "nothing"


@pytest.fixture
def unset(now):
    """An invoice without an order, its task at rest."""
    with only_timelines(closing()):
        invoice = Invoice.objects.create()
        begun(invoice, now)
        yield invoice


class TestAKeyThatIsNotSet:
    def test_is_waited_for_until_the_deadline(self, unset, now, run_at):
        row = ScheduledTask.objects.get()
        run_at(row, now)

        assert state_of(row) == (State.RETRYABLE, "waiting", now + THREE_DAYS)
        assert row.reason == (
            "waits until 2026-03-04 09:00 UTC: there is no order yet that order.paid order.returned could come to"
        )
        assert run_at(row, now + THREE_DAYS).result == "nothing"

    def test_is_not_the_system(self, unset, now, later, run_at, emit_at):
        row = ScheduledTask.objects.get()
        run_at(row, now)

        emit_at("order.paid", None, later)

        assert state_of(row)[0] == State.RETRYABLE

    @pytest.mark.parametrize("field", ["order", "order_id"])
    def test_counts_as_soon_as_it_is_saved(self, unset, order, now, later, run_at, emit_at, field):
        """What came to that order since the run began counts, too."""
        row = ScheduledTask.objects.get()
        run_at(row, now)
        emit_at("order.paid", order, now + timedelta(hours=1))

        unset.order = order
        with story_time(lambda: later):
            unset.save(update_fields=[field])

        assert state_of(row)[:2] == (State.AVAILABLE, "event")
        assert row.reason == "its order is another one now"
        assert run_at(row, row.scheduled_at).result == "order.paid"


class TestADeploy:
    def test_that_shortens_the_wait_ends_it_sooner(self, unset, order, now, later, run_at):
        Invoice.objects.update(order=order)
        row = ScheduledTask.objects.get()
        run_at(row, now)

        with only_timelines(closing(within=timedelta(days=2))):
            reconcile(entity=unset, now=later, using="default")

            row.refresh_from_db()
            assert (row.state, row.scheduled_at) == (State.RETRYABLE, now + timedelta(days=2))
            assert run_at(row, row.scheduled_at).result == "nothing"

    def test_that_changed_the_time_leaves_it_waiting_for_what_its_key_leads_to(self, unset, order, now, later, run_at):
        Invoice.objects.update(order=order)
        row = ScheduledTask.objects.get()
        run_at(row, now)
        with only_timelines(closing(within=timedelta(days=5))):
            reconcile(entity=unset, now=later, using="default")
            Invoice.objects.update(order=Order.objects.create())

            reconcile(entity=unset, now=later, using="default")

            assert state_of(row)[0] == State.AVAILABLE


class TestAKeyThatChanges:
    def test_is_followed(self, unset, order, now, later, run_at, emit_at):
        row = ScheduledTask.objects.get()
        Invoice.objects.update(order=order)
        run_at(row, now)
        other = Order.objects.create()
        Invoice.objects.update(order=other)

        reconcile(entity=unset, now=later, using="default")
        run_at(row, later)

        assert state_of(row)[:2] == (State.RETRYABLE, "waiting")
        assert row.awaits_id == str(other.pk)
        emit_at("order.paid", order, later)
        assert stage(now=later, using="default") == 0
        emit_at("order.paid", other, later)
        assert stage(now=later, using="default") == 1

    def test_is_left_alone_where_it_leads_to_the_same(self, unset, order, now, run_at, later):
        row = ScheduledTask.objects.get()
        Invoice.objects.update(order=order)
        run_at(row, now)
        before = state_of(row)

        with story_time(lambda: later):
            Invoice.objects.get().save()
        reconcile(entity=unset, now=later, using="default")

        assert state_of(row) == before

    def test_is_seen_though_it_changed_while_the_task_went_to_rest(self, unset, order, now, run_at, monkeypatch):
        """Under the lock of its own entity it looks once more where the key leads."""
        row = ScheduledTask.objects.get()
        monkeypatch.setattr(finalize, "settle", _saving_first(unset, order))

        run_at(row, now)

        assert state_of(row) == (State.RETRYABLE, "waiting", now)
        run_at(row, now)
        assert state_of(row)[2] == now + THREE_DAYS
        assert row.awaits_id == str(order.pk)

    @pytest.mark.parametrize("then", ["null", "dangling"])
    def test_is_waited_for_no_more_where_it_was_deleted(self, unset, order, now, later, run_at, then):
        """Where the key is null then, what takes its place may come yet; else the time has run out."""
        row = ScheduledTask.objects.get()
        Order.objects.create()  # Where there is no row at all, none is taken for deleted.
        Invoice.objects.update(order=order)
        run_at(row, now)
        with only_timelines(closing(), of_orders()):
            if then == "null":
                Invoice.objects.update(order=None)
            order.delete()
            assert stage(now=later, using="default") == 1
            done = run_at(row, later)

        if then == "null":
            assert (done.state, done.reason_code, done.scheduled_at) == (State.RETRYABLE, "waiting", now + THREE_DAYS)
            assert done.awaits == ""
        else:
            assert done.result == "nothing"


def of_orders():
    class Orders(Timeline):
        entity = "testapp.Order"

        @task()
        def work(self, order): ...

    return Orders


def _saving_first(invoice, order):
    settle = finalize.settle

    def saving(writes, **given):
        if invoice.order is None:
            invoice.order = order
            invoice.save()
        return settle(writes, **given)

    return saving


class TestWhatHasFailed:
    @pytest.mark.parametrize("counted", ["failures", "lost"])
    def test_and_was_moved_does_not_run_before_its_time(self, order, now, later, run_at, counted):
        """It waits for nobody any more, and looks like one that rests for nobody."""
        invoice = Invoice.objects.create(order=order)
        with only_timelines(closing()):
            row = begun(invoice, now)
            run_at(row, now)
            changed = {"reason_code": "moved", "scheduled_at": later, counted: 1}
            ScheduledTask.objects.update(awaits="", awaits_label="", awaits_id="", awaits_other=False, **changed)

            reconcile(entity=invoice, now=now, using="default")

        assert state_of(row) == (State.RETRYABLE, "moved", later)


class TestWhatIsDeclaredWrongly:
    @pytest.mark.parametrize("of", ["orders", "order.paid", "order.", 7, Order, "invoice_set"])
    def test_is_an_error_at_start(self, of):
        with pytest.raises(DefinitionError, match="close"):
            registry.register(closing(of))

    def test_is_a_system_timeline(self):
        with pytest.raises(DefinitionError, match="none of its own"):

            class Closing(Timeline):
                @task(wait_for("order.paid", of="order", within=THREE_DAYS))
                def close(self): ...


class TestWhatIsTold:
    def test_names_the_other_entity(self, unset, now):
        [entry] = inventory(now=now, using="default")

        said = "when order.paid or order.returned of its order comes, or 72 hours after the start of the run"
        assert entry.tasks[0].when == said

    def test_makes_the_event_a_known_one_of_the_other(self, unset):
        assert "order.paid" in registry.events()["testapp.order"]
        assert "order.paid" not in registry.events()["testapp.invoice"]
