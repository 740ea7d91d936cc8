"""A date that the open runs of an entity cannot follow is refused before it is written."""

from datetime import UTC, date, datetime, timedelta

import pytest
from django.db.models import F

from tests.testapp.models import Account, Customer, Order
from timeline import Timeline, after, at, created, task
from timeline.exceptions import DateOutOfRange
from timeline.models import ScheduledTask, TimelineRun
from timeline.testing import autostart, only_timelines

FAR = datetime(9001, 1, 1, tzinfo=UTC)


class Delivery(Timeline):
    entity = "testapp.Order"

    @task(after("ships_at", days=3))
    def ship(self, order): ...

    @task(at("due_on"))
    def remind(self, order): ...


class Greeting(Timeline):
    entity = "testapp.Order"
    starts_on = created()

    @task(at("ships_at"))
    def greet(self, order): ...


class Contract(Timeline):
    entity = "testapp.Account"

    @task(at("ends_at"))
    def end(self, account): ...


class Care(Timeline):
    entity = "testapp.Customer"

    @task(at("ends_at"))
    def ask(self, customer): ...


@pytest.fixture(autouse=True)
def _only_these(db, clock):
    with only_timelines(Delivery):
        yield


@pytest.fixture
def planned(order, later, now, start_at):
    """An order with an open run and a date."""
    Order.objects.update(ships_at=later)
    start_at("delivery", order, now)
    return Order.objects.get()


class TestASave:
    @pytest.mark.parametrize(
        "dates",
        [
            {"ships_at": FAR},
            {"ships_at": datetime(1969, 12, 31, tzinfo=UTC)},
            {"ships_at": datetime(8999, 12, 30, tzinfo=UTC)},  # Three days later it is too late.
            {"ships_at": "9001-01-01T00:00:00Z"},
            {"ships_at": datetime(9001, 1, 1)},  # noqa: DTZ001 (that is the case)
            {"due_on": date(9001, 1, 1)},
        ],
        ids=str,
    )
    @pytest.mark.parametrize("fields", [None, True])
    def test_is_refused_before_the_row_is_written(self, planned, later, dates, fields):
        vars(planned).update(dates)

        with pytest.raises(DateOutOfRange, match=next(iter(dates))):
            planned.save(update_fields=fields and list(dates))

        stored = Order.objects.get()
        assert (stored.ships_at, stored.due_on) == (later, None)

    def test_is_taken_where_no_run_is_open(self, planned, now):
        TimelineRun.objects.update(ended_at=now, end_reason="closed")

        planned.ships_at = FAR
        planned.save()

        assert Order.objects.get().ships_at == FAR

    def test_is_taken_where_only_other_fields_are_written(self, planned, later):
        planned.ships_at, planned.note = FAR, "x"

        planned.save(update_fields=["note"])

        assert Order.objects.get().note == "x"

    def test_is_taken_where_the_field_was_not_read(self, planned, django_assert_num_queries):
        unread = Order.objects.defer("ships_at", "due_on").get()

        with django_assert_num_queries(1):
            unread.save()

    def test_is_taken_where_only_the_database_knows_what_is_written(self, planned, later):
        planned.ships_at = F("ships_at") + timedelta(days=1)

        planned.save()

        assert ScheduledTask.objects.get().scheduled_at == later + timedelta(days=4)

    def test_asks_nothing_about_dates_that_fit(self, planned, now, django_assert_num_queries):
        TimelineRun.objects.update(ended_at=now, end_reason="closed")

        with django_assert_num_queries(2):  # The row itself; and, once it is saved, whether a run is open.
            planned.save()

    def test_leaves_to_django_what_is_no_date(self, planned):
        planned.ships_at = "tomorrow"

        with pytest.raises(Exception, match="invalid format"):
            planned.save()


class TestAnInsert:
    def test_is_refused_where_it_would_start_a_run(self):
        with only_timelines(Greeting), pytest.raises(DateOutOfRange, match="ships_at"):
            Order.objects.create(ships_at=FAR)

        assert not Order.objects.exists()

    def test_is_taken_where_nothing_is_started(self):
        with only_timelines(Greeting), autostart(False):
            Order.objects.create(ships_at=FAR)

        assert Order.objects.exists()

    def test_is_taken_where_the_row_is_there_already(self, order):
        with only_timelines(Greeting):
            Order(pk=order.pk, ships_at=FAR).save()

        assert Order.objects.get().ships_at == FAR


class TestAFamily:
    def test_refuses_a_childs_date_that_its_parents_run_follows(self, start_at, now, later):
        with only_timelines(Contract):
            customer = Customer.objects.create(ends_at=later)
            start_at("contract", customer, now)
            customer.ends_at = FAR

            with pytest.raises(DateOutOfRange, match="ends_at"):
                customer.save()

        assert Account.objects.get().ends_at == later

    def test_refuses_a_parents_date_that_a_childs_run_follows(self, start_at, now, later):
        with only_timelines(Care):
            customer = Customer.objects.create(ends_at=later)
            start_at("care", customer, now)
            account = Account.objects.get()
            account.ends_at = FAR

            with pytest.raises(DateOutOfRange, match="ends_at"):
                account.save()

        assert Account.objects.get().ends_at == later

    def test_takes_a_parents_date_that_no_run_follows(self, later):
        with only_timelines(Care):
            account = Account.objects.create(ends_at=later)
            account.ends_at = FAR
            account.save()

        assert Account.objects.get().ends_at == FAR
