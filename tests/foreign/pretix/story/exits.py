"""What ends the run of an order."""

from __future__ import annotations

from django_scopes import scope, scopes_disabled
from pretix.base.models import Order
from pretix.base.models.orders import OrderPayment
from pretix.base.services.orders import _cancel_order
from seeing import seen

from story.shop import again, event, place
from timeline.models import ScheduledTask, TimelineRun


def endings(order: Order) -> dict[str, str]:
    """Why the tasks of an order were cancelled; nothing may be open."""
    tasks = ScheduledTask.objects.for_entity(order)
    assert not tasks.open().exists(), list(tasks.open())
    assert not TimelineRun.objects.filter(entity_id=str(order.pk), ended_at=None).exists()
    return {task.task_key: task.reason for task in tasks if task.state == "cancelled"}


@seen("A payment that is confirmed ends the run: order_paid")
def paid() -> None:
    order = place()
    with scope(organizer=event().organizer):
        payment = order.payments.create(
            provider="banktransfer", amount=order.total, state=OrderPayment.PAYMENT_STATE_CREATED
        )
        payment.confirm(send_mail=False)

    assert again(order).status == Order.STATUS_PAID
    assert endings(order) == {"payment.remind": "paid", "payment.note": "paid"}, endings(order)


@seen("A part of the payment ends nothing")
def paid_in_part() -> None:
    order = place()
    with scope(organizer=event().organizer):
        payment = order.payments.create(
            provider="banktransfer", amount=order.total / 2, state=OrderPayment.PAYMENT_STATE_CREATED
        )
        payment.confirm(send_mail=False)

    assert again(order).status == Order.STATUS_PENDING
    assert ScheduledTask.objects.for_entity(order).open().count() == 2


@seen("An order that is cancelled ends the run: order_canceled")
def canceled() -> None:
    order = place()
    with scope(organizer=event().organizer):
        _cancel_order(order.pk, send_mail=False)

    assert endings(order) == {"payment.remind": "canceled", "payment.note": "canceled"}, endings(order)


@seen("An order that is deleted leaves cancelled rows")
def deleted() -> None:
    order = place()
    copy = again(order)
    with scopes_disabled():
        order.all_positions.all().delete()
        order.transactions.all().delete()
        order.delete()

    assert set(endings(copy)) == {"payment.remind", "payment.note"}
    codes = ScheduledTask.objects.for_entity(copy).values_list("reason_code", flat=True)
    assert set(codes) == {"entity_gone"}, set(codes)
