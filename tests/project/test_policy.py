"""Where staff are led to see what a customer sees, and who is not."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission

from project.accounts.models import User
from project.policy import Policy
from project.portal.models import Booking
from tests.testapp.models import Order


@pytest.fixture
def staff(db, now):
    """Make staff with permissions."""

    def make(*names):
        user = User.objects.create(
            email=f"{'-'.join(names)}@example.com", is_staff=True, signed_up_at=now, trial_ends_at=now
        )
        user.user_permissions.set(Permission.objects.filter(codename__in=names))
        return user

    return make


class TestCustomerPage:
    def test_is_the_customers_own_for_who_may_change_the_account(self, staff, client):
        address = Policy().customer_page(staff("change_user"), ada := staff("view_scheduledtask"))

        assert client.get(address).context["user"] == ada

    def test_is_that_of_a_booking_for_who_may_change_it(self, staff):
        address = Policy().customer_page(staff("change_booking"), Booking(pk=7))

        assert address.startswith("/appointments/7:")

    @pytest.mark.parametrize("entity", [User(pk=7), Booking(pk=7), Order(pk=7)])
    def test_is_none_for_others(self, staff, entity):
        assert Policy().customer_page(staff("view_scheduledtask", "view_user", "view_booking"), entity) == ""
