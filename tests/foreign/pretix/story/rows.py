"""Rows of orders, made by pretix's own services."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django_scopes import scope
from pretix.base.models import Order
from pretix.base.services.orders import extend_order
from seeing import seen

from story.shop import again, event, in_days, make_people, place
from timeline.models import ScheduledTask


def times(order: Order) -> dict[str, object]:
    """When the open tasks of an order are due."""
    return {task.task_key: task.scheduled_at for task in ScheduledTask.objects.for_entity(order).open()}


def expected(order: Order) -> dict[str, object]:
    """When they should be."""
    return {"payment.remind": order.expires - timedelta(days=3), "payment.note": order.expires}


@seen("An order that is placed has its rows, in pretix's own transaction and scope")
def placed() -> None:
    make_people()
    order = place()

    assert times(order) == expected(order), times(order)


@seen("An order that pretix rolls back leaves no rows")
def rolled_back() -> None:
    before = ScheduledTask.objects.count()
    with transaction.atomic():
        place()
        assert ScheduledTask.objects.count() == before + 2
        transaction.set_rollback(True)

    assert ScheduledTask.objects.count() == before


@seen("Extending an order by pretix's service moves the rows")
def extended() -> None:
    order = place()

    with scope(organizer=event().organizer):
        extend_order(order, in_days(30))

    order = again(order)
    assert order.expires > in_days(29)
    assert times(order) == expected(order), times(order)


@seen("Where the plugin is switched off for an event, there are no rows")
def switched_off() -> None:
    shop = event()
    with scope(organizer=shop.organizer):
        shop.disable_plugin("dunning")
        shop.save()
        order = place()
        shop.enable_plugin("dunning")
        shop.save()

    assert times(order) == {}
