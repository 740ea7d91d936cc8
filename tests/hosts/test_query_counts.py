"""What a save costs a host, in queries: its own tests count them. The clock is the database's, as in production."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from tests.databases import VENDOR
from tests.testapp.models import Account, Customer, Effect, Employee, Order, Reseller
from timeline import Timeline, after, at, created, task
from timeline.lifecycle import State
from timeline.models import ScheduledTask, TimelineRun
from timeline.shortcuts import start
from timeline.testing import autostart, only_timelines

ENDS = ("SAVEPOINT", "RELEASE", "BEGIN", "COMMIT")
DATE = datetime(2030, 1, 1, tzinfo=UTC)
ON_POSTGRESQL = VENDOR == "postgresql"

pytestmark = pytest.mark.django_db(transaction=True)


class Delivery(Timeline):
    """Follows a date, and starts on an event."""

    entity = "testapp.Order"
    starts_on = "order.placed"

    @task(at("ships_at"))
    def ship(self, order: Order) -> None: ...


class Welcome(Timeline):
    """Follows no date, and starts with the row."""

    entity = "testapp.Order"
    starts_on = created()

    @task(after(days=1))
    def greet(self, order: Order) -> None: ...


class Shipping(Delivery):
    """Follows a date, and starts with the row."""

    starts_on = created()


@pytest.fixture(params=["in a transaction", "outside of one"], autouse=True)
def _transaction(request):
    """With ``ATOMIC_REQUESTS``, and without."""
    if request.param == "outside of one":
        yield
        return
    with transaction.atomic():
        yield


@pytest.fixture
def order():
    """An entity that no timeline knows."""
    with only_timelines():
        return Order.objects.create(ships_at=DATE)


class Counted(CaptureQueriesContext):
    """Counts the queries within the block, without what begins and ends a transaction."""

    def __init__(self) -> None:
        super().__init__(connection)

    def __len__(self) -> int:
        return len(self.said)

    @property
    def said(self) -> list[str]:
        """The statements."""
        return [query["sql"] for query in self.captured_queries if not query["sql"].startswith(ENDS)]


@pytest.fixture
def costs():
    """Count what is done within the block, on top of one query of the host's own."""

    class Costs(Counted):
        def __init__(self, ours: int, *, hosts: int = 1) -> None:
            super().__init__()
            self.expected = ours + hosts

        def __exit__(self, *raised):
            super().__exit__(*raised)
            if raised[0] is None:
                assert len(self) == self.expected, "\n".join(self.said)

    return Costs


class TestASaveOfAnEntityWithoutARun:
    def test_costs_one_query_where_a_timeline_follows_a_date(self, order, costs):
        with only_timelines(Delivery), costs(1):
            order.save()

    def test_costs_one_query_however_many_timelines_there_are(self, order, costs):
        with only_timelines(Delivery, Welcome, Shipping), costs(1):
            order.save()

    def test_costs_nothing_where_none_follows_a_date(self, order, costs):
        with only_timelines(Welcome), costs(0):
            order.save()

    def test_costs_nothing_where_none_of_its_fields_is_followed(self, order, costs):
        with only_timelines(Delivery), costs(0):
            order.save(update_fields=["note"])

    def test_costs_one_query_where_one_of_its_fields_is(self, order, costs):
        with only_timelines(Delivery), costs(1):
            order.save(update_fields=["ships_at", "note"])

    def test_costs_nothing_within_no_timelines(self, order, costs):
        with only_timelines(), costs(0):
            order.save()

    def test_costs_one_query_for_the_whole_family(self, costs):
        class OfAccounts(Timeline):
            entity = "testapp.Account"

            @task(at("ends_at"))
            def end(self, account): ...

        class OfCustomers(Timeline):
            entity = "testapp.Customer"

            @task(at("ends_at"))
            def visit(self, customer): ...

        customer = Reseller.objects.create(ends_at=DATE)
        with only_timelines(OfAccounts, OfCustomers):
            with costs(1, hosts=3):  # A row of each model.
                customer.save()
            account = Account.objects.get(pk=customer.pk)
            with costs(1):
                account.save()


class TestASaveOfAnEntityWithARun:
    @pytest.fixture
    def run(self, order):
        with only_timelines(Delivery):
            yield start(Delivery, order).run

    def test_that_changes_no_date_reads_and_writes_nothing(self, order, run, costs):
        with costs(5) as queries:  # Its runs; entity, runs and rows are locked; the clock.
            order.save()

        assert [sql for sql in queries.said if sql.startswith(("INSERT", "UPDATE"))] == queries.said[:1]

    def test_that_changes_a_date_writes_as_many_rows_in_one_statement(self, order, run, costs):
        order.ships_at = DATE + timedelta(days=1)

        with costs(6 if ON_POSTGRESQL else 7):  # SQLite writes the log by a statement of its own.
            order.save()

        assert ScheduledTask.objects.get().scheduled_at == order.ships_at

    def test_of_another_field_costs_nothing(self, order, run, costs):
        with costs(0):
            order.save(update_fields=["note"])


class TestAnInsertedRow:
    def test_costs_nothing_where_an_event_starts_its_runs(self, costs):
        with only_timelines(Delivery), costs(0):
            Order.objects.create(ships_at=DATE)

    def test_costs_nothing_while_autostart_is_off(self, costs):
        with only_timelines(Delivery, Welcome, Shipping), autostart(False), costs(0):
            Order.objects.create(ships_at=DATE)

    def test_that_starts_a_run_costs_a_lock_with_the_clock_and_what_is_written(self, costs):
        with only_timelines(Welcome), costs(2 if ON_POSTGRESQL else 4):
            Order.objects.create()

        assert TimelineRun.objects.get().is_open

    def test_that_starts_a_run_by_its_date_asks_for_the_clock_apart(self, costs):
        with only_timelines(Shipping), costs(3 if ON_POSTGRESQL else 4):
            Order.objects.create(ships_at=DATE)

    def test_costs_nothing_where_it_is_one_of_many(self, costs):
        with only_timelines(Delivery, Welcome, Shipping), costs(0):
            Order.objects.bulk_create([Order(ships_at=DATE) for number in range(100)])

        assert not TimelineRun.objects.exists()

    def test_that_adds_a_child_to_a_parent_costs_nothing_while_autostart_is_off(self, costs):
        class OfAccounts(Timeline):
            entity = "testapp.Account"
            starts_on = created()

            @task(after(days=1))
            def greet(self, account): ...

        account = Account.objects.create()
        with only_timelines(OfAccounts), autostart(False), costs(0, hosts=3):
            Customer(account_ptr=account).save()


class TestADeletedRow:
    def test_without_a_run_costs_three_queries(self, order, costs):
        with only_timelines(Delivery, Welcome), costs(3):  # Whether others wait for it; runs; tasks without a run.
            order.delete()

    def test_with_a_run_costs_six_however_many_rows_it_has(self, order, costs):
        with only_timelines(Delivery):
            start(Delivery, order)

            with costs(
                6 if ON_POSTGRESQL else 7
            ):  # Who waits for it, runs, tasks, the clock, both written; on SQLite the log.
                order.delete()

        assert ScheduledTask.objects.get().state == State.CANCELLED

    def test_of_a_model_that_no_timeline_is_about_costs_nothing(self, costs):
        effect = Effect.objects.create(name="x")

        with only_timelines(Delivery), costs(0):
            effect.delete()


class TestAFamily:
    """Of which two models have a timeline."""

    @pytest.fixture(autouse=True)
    def _known(self):
        class OfAccounts(Timeline):
            entity = "testapp.Account"
            starts_on = created()

            @task(at("ends_at"))
            def end(self, account): ...

        class OfCustomers(OfAccounts):
            entity = "testapp.Customer"

        with only_timelines(OfAccounts, OfCustomers):
            yield

    def test_costs_as_much_for_each_of_them_to_insert(self, costs):
        with costs(2 * (3 if ON_POSTGRESQL else 4), hosts=2):
            Customer.objects.create(ends_at=DATE)

        assert TimelineRun.objects.count() == 2

    def test_costs_one_more_to_save(self, costs):
        customer = Customer.objects.create(ends_at=DATE)

        with costs(5 + 1, hosts=2):
            customer.save()
        customer.ends_at = DATE + timedelta(days=1)
        with costs(6 + 1 if ON_POSTGRESQL else 7 + 1, hosts=2):
            customer.save()

        assert {task.scheduled_at for task in ScheduledTask.objects.all()} == {customer.ends_at}

    def test_costs_as_much_for_each_of_them_to_delete_and_a_lock(self, costs):
        customer = Customer.objects.create(ends_at=DATE)

        with costs(2 * 7 + 1 if ON_POSTGRESQL else 2 * 8, hosts=3):  # A grandchild's row, if there is one, goes first.
            customer.delete()

    def test_costs_one_more_to_make_a_child_of_a_parent_that_is_there(self, costs):
        account = Account.objects.create(ends_at=DATE)

        with costs(
            1 + (3 if ON_POSTGRESQL else 4) + 5, hosts=3
        ):  # Is it there? A run of the customer; the account is saved.
            Customer(account_ptr=account, ends_at=DATE).save()


class TestARowOfAnotherParent:
    def test_has_the_child_found_by_its_link(self, costs):
        """Where parent and child have different keys, the child is looked up."""

        class OfEmployees(Timeline):
            entity = "testapp.Employee"

            @task(at("valid_until"))
            def renew(self, employee): ...

        Account.objects.create()
        employee = Employee.objects.create()
        with only_timelines(OfEmployees), costs(2):
            employee.badge_ptr.save()
