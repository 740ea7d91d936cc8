"""The rows of entities, locked: with parents or without, through a host's manager or past none."""

import pytest
from django.db import connection, models, transaction

from tests.testapp.models import Country, Customer, Order, Parcel, Seller
from timeline.models import EntityRef, ref_of
from timeline.models.entities import NO_ENTITY
from timeline.store.locks import lock_rows

pytestmark = pytest.mark.django_db


@pytest.fixture(params=[Order, Parcel, Country, Customer, Seller], ids=lambda model: model.__name__)
def entity(request):
    """A saved entity: with an integer, a UUID and a string key, with a parent, with a manager that hides some."""
    if request.param is Country:
        return Country.objects.create(code='é "d\'x" \\ 1 %')
    return request.param.objects.create()


class TestLockRows:
    def test_tells_which_are_there(self, entity):
        there = ref_of(entity)
        gone = [
            EntityRef(there.label, "no key"),
            EntityRef(there.label, "4711"),
            EntityRef("testapp.gone", "1"),
            NO_ENTITY,
        ]

        assert lock_rows([there, *gone], using="default").refs == {there}

    def test_reads_nothing_but_keys(self, django_assert_num_queries):
        order = Order.objects.create()

        with django_assert_num_queries(1) as asked:
            lock_rows([ref_of(order)], using="default")

        sql = asked.captured_queries[0]["sql"]
        assert '"id"' in sql
        assert "ships_at" not in sql

    def test_asks_the_hosts_manager(self):
        there, hidden = Seller.objects.create(), Seller.objects.create(hidden=True)

        assert lock_rows([ref_of(there), ref_of(hidden)], using="default").refs == {ref_of(there)}

    def test_takes_a_key_that_is_written_otherwise_for_none(self):
        order = Order.objects.create()

        assert lock_rows([EntityRef("testapp.order", f"0{order.pk}")], using="default").refs == set()

    @pytest.mark.only_postgresql
    def test_asks_the_clock_only_if_told_to(self):
        order = Order.objects.create()

        with transaction.atomic(), connection.execute_wrapper(self.look):
            told = [lock_rows([ref_of(order)], clock=clock, using="default").at for clock in (False, True)]

        assert [moment is None for moment in told] == [True, False]
        assert ["clock" in sql for sql in self.asked] == [False, True]

    @pytest.mark.only_postgresql
    def test_asks_what_django_would(self, entity):
        """In order of the keys, with a lock that lets others refer to the row."""
        with transaction.atomic(), connection.execute_wrapper(self.look):
            lock_rows([ref_of(entity)], using="default")

        [sql] = self.asked
        assert "FOR NO KEY UPDATE" in sql
        assert sql.index("ORDER BY") < sql.index("FOR NO KEY UPDATE")

    @pytest.fixture(autouse=True)
    def _asked(self):
        self.asked = []

    def look(self, execute, sql, *rest):
        if "FOR NO KEY" in sql:
            self.asked.append(sql)
        return execute(sql, *rest)

    @pytest.mark.only_postgresql
    @pytest.mark.parametrize("model", [Order, Parcel, Country])
    def test_is_written_once(self, model, monkeypatch):
        """Django's queries are made where there is more to it."""
        lock_rows([EntityRef(model._meta.label_lower, "1")], using="default")
        monkeypatch.setattr(models.Manager, "using", None)

        assert lock_rows([EntityRef(model._meta.label_lower, "1")], using="default").refs == set()
