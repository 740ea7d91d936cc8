"""The organizer, the event, people and orders, made by pretix's own functions where there are some."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

from django.contrib.auth.models import Permission
from django.db import transaction
from django.test import Client
from django.utils import timezone
from django_scopes import scope, scopes_disabled
from pretix.base.models import CartPosition, Event, Order, Organizer, User
from pretix.base.services.orders import _create_order

MANAGER, GUEST = "manager@example.com", "guest@example.com"


def make_shop() -> None:
    """An event with tickets, and the plugin switched on for it."""
    organizer = Organizer.objects.create(name="Barn", slug="barn")
    with scope(organizer=organizer):
        event = Event.objects.create(
            organizer=organizer,
            name="Harvest",
            slug="harvest",
            date_from=in_days(60),
            live=True,
            plugins="pretix.plugins.banktransfer,dunning",
        )
        event.settings.payment_choice_postpone_allowed_channels = ["web"]  # Ordered now, paid later.
        item = event.items.create(name="Ticket", default_price=Decimal("23.00"))
        quota = event.quotas.create(name="All", size=1000)
        quota.items.add(item)


def make_people() -> None:
    """Staff who may do all with tasks, and a guest who may do nothing. Nobody is a superuser in pretix."""
    manager = User.objects.create_user(MANAGER, "manager", is_staff=True)
    manager.user_permissions.set(Permission.objects.filter(content_type__app_label="timeline"))
    User.objects.create_user(GUEST, "guest")


def browser(email: str) -> Client:
    """A browser in which somebody is logged in."""
    client = Client()
    client.force_login(User.objects.get(email=email))
    return client


def in_days(days: float) -> datetime:
    """A moment."""
    return timezone.now() + timedelta(days=days)


def event() -> Event:
    """The one event."""
    with scopes_disabled():
        return Event.objects.select_related("organizer").get()


def place(tickets: int = 2) -> Order:
    """Place an order, as the last step of a checkout does."""
    shop = event()
    with scope(organizer=shop.organizer), transaction.atomic():
        item = shop.items.get()
        cart = [
            CartPosition.objects.create(
                event=shop, cart_id="cart", item=item, price=item.default_price, expires=in_days(1)
            )
            for _ in range(tickets)
        ]
        order, _payments = _create_order(
            shop,
            email="ada@example.com",
            positions=cart,
            now_dt=timezone.now(),
            payment_requests=[],
            sales_channel=shop.organizer.sales_channels.get(identifier="web"),
            locale="en",
        )
        return order


def again(order: Order) -> Order:
    """Read an order once more."""
    with scopes_disabled():
        return Order.objects.get(pk=order.pk)
