"""Families: which models share a key, what leads across to others, and where each comes in the lock order."""

from __future__ import annotations

import pytest

from tests.testapp.models import (
    Account,
    Badge,
    Customer,
    CustomerProxy,
    Employee,
    EmployeeProxy,
    Order,
    OrderProxy,
    Plane,
    Reseller,
    Seaplane,
    Ship,
    Vessel,
)
from timeline.models.entities import concrete_of, families, kinds_of, line_of, place_of, relatives

ACCOUNTS = (Account, Customer, Employee, Reseller)


class TestRelatives:
    @pytest.mark.parametrize("label", ["account", "customer", "customerproxy", "employee", "reseller"])
    def test_are_all_that_share_the_key_the_root_first_and_parents_before_children(self, label):
        assert relatives(f"testapp.{label}") == ACCOUNTS

    @pytest.mark.parametrize("label", ["vessel", "plane", "seaplane"])
    def test_are_in_this_order_whatever_they_are_called(self, label):
        assert relatives(f"testapp.{label}") == (Vessel, Plane, Ship, Seaplane)

    def test_are_just_the_model_where_it_has_no_family(self):
        assert relatives("testapp.order") == relatives("testapp.orderproxy") == (Order,)

    def test_are_none_of_what_is_not_installed(self):
        assert relatives("testapp.gone") == ()

    def test_are_not_those_across_a_link_that_is_not_the_key(self):
        assert relatives("testapp.badge") == (Badge,)


class TestBridges:
    def test_lead_from_both_ends_across_a_link_that_is_not_the_key(self):
        [bridge] = families().bridges["testapp.badge"]

        assert families().bridges["testapp.account"] == [bridge]
        assert (bridge.child, bridge.link.name) == (Employee, "badge_ptr")
        assert (bridge.root, bridge.leads_to) == ("testapp.account", "testapp.badge")

    def test_are_none_within_a_diamond(self):
        """It is another way to the same root."""
        assert "testapp.vessel" not in families().bridges


class TestKindsOf:
    @pytest.mark.parametrize("label", ["testapp.badge", "testapp.reseller"])
    def test_go_across_links_too(self, label):
        assert kinds_of(label) == {model._meta.label_lower for model in (*ACCOUNTS, Badge)}

    def test_have_the_label_of_a_proxy_beside_what_it_stands_for(self):
        assert kinds_of("testapp.orderproxy") == {"testapp.orderproxy", "testapp.order"}

    def test_are_the_label_itself_where_nothing_is_installed(self):
        assert kinds_of("testapp.gone") == {"testapp.gone"}


class TestPlaceOf:
    def test_is_in_a_tree_the_parents_before_their_children(self):
        places = [place_of(model._meta.label_lower) for model in ACCOUNTS]

        assert places == [("testapp.account", number) for number in range(4)]

    def test_is_a_tree_of_its_own_where_nothing_is_installed(self):
        assert place_of("testapp.gone") == ("testapp.gone", 0)


class TestConcreteOf:
    @pytest.mark.parametrize(
        ("model", "concrete"), [(OrderProxy, Order), (EmployeeProxy, Employee), (Order, Order), (Customer, Customer)]
    )
    def test_is_what_a_proxy_stands_for_or_the_model_itself(self, model, concrete):
        assert concrete_of(model) is concrete


class TestLineOf:
    @pytest.mark.parametrize(
        ("model", "line"),
        [
            (Order, [Order]),
            (Reseller, [Reseller, Customer, Account]),
            (CustomerProxy, [CustomerProxy, Account]),
            (Employee, [Employee, Account]),
            (Seaplane, [Seaplane, Ship, Vessel]),
        ],
    )
    def test_goes_up_as_far_as_the_key_is_shared(self, model, line):
        assert line_of(model) == line
