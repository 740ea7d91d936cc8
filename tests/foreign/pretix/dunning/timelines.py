"""The future of an order that is to be paid, and what tells of it."""

from __future__ import annotations

from django.core.mail import send_mail
from django.dispatch import receiver
from django_scopes import scope
from pretix.base.models import Event, Order
from pretix.base.signals import order_canceled, order_paid, order_placed

from timeline import Timeline, at, before, task
from timeline.shortcuts import emit


def is_pending(order: Order) -> bool:
    """Whether it is still to be paid."""
    return bool(order.status == Order.STATUS_PENDING)


class Payment(Timeline):
    """Until an order is paid."""

    entity = "pretixbase.Order"
    starts_on = "order.placed"
    exits = {"order.paid": "paid", "order.canceled": "canceled"}

    @task(before("expires", days=3), only_if=is_pending, atomic=False)
    def remind(self, order: Order) -> dict[str, int]:
        """Write a mail that says for how many tickets."""
        with scope(organizer=order.event.organizer):  # Without it, pretix's managers raise.
            tickets = order.positions.count()
        send_mail(f"Order {order.full_code}", f"{tickets} tickets are still to be paid.", None, [order.email])
        return {"tickets": tickets}

    @task(at("expires"), only_if=is_pending)
    def note(self, order: Order) -> dict[str, int]:
        """Forget the scope: what a mistake looks like."""
        return {"tickets": order.positions.count()}


@receiver(order_placed, dispatch_uid="dunning.placed")
def on_placed(*, sender: Event, order: Order, **_extra: object) -> None:
    """Pretix sends this in the transaction in which the order is made."""
    emit("order.placed", order)


@receiver(order_paid, dispatch_uid="dunning.paid")
def on_paid(*, sender: Event, order: Order, **_extra: object) -> None:
    """The same for its payment."""
    emit("order.paid", order)


@receiver(order_canceled, dispatch_uid="dunning.canceled")
def on_canceled(*, sender: Event, order: Order, **_extra: object) -> None:
    """The same for its end."""
    emit("order.canceled", order)
