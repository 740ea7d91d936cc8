"""Kin: all that an entity is called, the same by whichever of its names it is given."""

from __future__ import annotations

import pytest

from tests.testapp.models import Badge, Customer, Employee
from timeline.models import EntityRef, Event
from timeline.models.kin import about_entity, kin_of, named_as, names_of

ACCOUNTS = ("testapp.account", "testapp.customer", "testapp.employee", "testapp.reseller")


def of_accounts(key):
    return tuple(EntityRef(label, str(key)) for label in ACCOUNTS)


class TestKinOf:
    def test_is_its_only_name_of_an_entity_without_a_family(self, db, django_assert_num_queries):
        one, gone = EntityRef("testapp.order", "1"), EntityRef("testapp.gone", "1")

        with django_assert_num_queries(0):
            assert kin_of([one, gone], using="default") == {one: (one,), gone: (gone,)}

    @pytest.mark.parametrize("label", ACCOUNTS)
    def test_is_all_that_share_the_key_whichever_is_given(self, db, label):
        """Also of a child that it is not: nobody looks."""
        customer = Customer.objects.create()

        assert names_of(EntityRef(label, str(customer.pk)), using="default") == of_accounts(customer.pk)

    @pytest.mark.parametrize("label", ["testapp.badge", "testapp.employee"])
    def test_goes_across_a_link_that_is_not_the_key_from_either_end(self, db, label):
        Badge.objects.create(number=70)
        employee = Employee.objects.create(number=71)
        key = 71 if label == "testapp.badge" else employee.pk

        names = names_of(EntityRef(label, str(key)), using="default")

        assert names == (*of_accounts(employee.pk), EntityRef("testapp.badge", "71"))

    def test_is_its_name_of_what_can_be_no_key(self, db):
        assert EntityRef("testapp.badge", "none") in names_of(EntityRef("testapp.badge", "none"), using="default")


class TestAboutEntity:
    @pytest.fixture
    def record(self, now):
        return lambda label, key: Event.objects.create(
            name="seen", entity_label=label, entity_id=str(key), occurred_at=now, recorded_at=now
        )

    def test_finds_rows_by_each_of_its_names_and_no_other(self, db, record):
        employee = Employee.objects.create(number=90)
        mine = {record("testapp.account", employee.pk), record("testapp.reseller", employee.pk)}
        mine |= {record("testapp.badge", 90)}
        record("testapp.badge", employee.pk)
        record("testapp.account", 90)
        record("testapp.order", employee.pk)

        assert set(Event.objects.filter(about_entity(employee, using="default"))) == mine

    def test_of_none_finds_rows_about_none(self, db, record):
        system = record("", "")
        record("testapp.order", 1)

        assert list(Event.objects.filter(about_entity(None, using="default"))) == [system]


class TestNamedAs:
    def test_takes_another_model_that_shares_the_key(self):
        assert named_as(EntityRef("testapp.account", "7"), "testapp.reseller") == ("testapp.reseller", "7")

    @pytest.mark.parametrize("label", ["testapp.badge", "testapp.order", "testapp.gone"])
    def test_leaves_it_where_the_key_is_another(self, label):
        assert named_as(EntityRef("testapp.account", "7"), label) == ("testapp.account", "7")
