"""Views that a host might write: async ones, and one whose request is a transaction."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.utils import timezone

from tests.testapp.models import Order
from timeline import shortcuts
from timeline.models import ScheduledTask


async def place(request: HttpRequest) -> HttpResponse:
    """Emit, with whatever payload the request has."""
    order = await Order.objects.aget()
    emission = await shortcuts.aemit("order.placed", order, payload=json.loads(request.body))
    return JsonResponse({"started": len(emission.started)})


def save_and_emit(**fields: Any) -> None:
    """What belongs together, in one function: it runs in one thread, in one transaction."""
    with transaction.atomic():
        shortcuts.emit("order.placed", Order.objects.create(**fields))
        if fields["note"] == "wrong":
            raise ValueError("wrong")


async def order_whole(request: HttpRequest) -> HttpResponse:
    """Write an order and its event, or neither."""
    await sync_to_async(save_and_emit)(note=request.POST["note"], ships_at=timezone.now())
    return HttpResponse()


async def handle(request: HttpRequest) -> HttpResponse:
    """Use one verb after the other."""
    order = await Order.objects.aget()
    run = (await shortcuts.astart("delivery", order)).run
    row = await ScheduledTask.objects.aget(task_key="delivery.pack")
    [row] = await shortcuts.amove(row, at=row.scheduled_at + timedelta(days=1), reason="later")
    [row] = await shortcuts.arun_now(row, reason="sooner")
    [row] = await shortcuts.acancel(row, reason="no")
    [row] = await shortcuts.aredrive(row, reason="yes")
    called = (await shortcuts.aschedule("delivery.call", order, at=row.scheduled_at)).task
    await shortcuts.areconcile(order)
    said = {
        "foreseen": [item.task_key for item in await shortcuts.aforeseen(order)],
        "preview": [item.task_key for item in await shortcuts.apreview("delivery", order)],
        "explained": await shortcuts.aexplain(called),
    }
    left = await shortcuts.aleave("delivery", order, reason="left")
    return JsonResponse({**said, "left": left.pk == run.pk})


def emit_and_fail(request: HttpRequest) -> HttpResponse:
    """Emit, and find out afterwards that all is wrong."""
    shortcuts.emit("order.placed", Order.objects.create(note="asked"))
    if "fail" in request.GET:
        raise ValueError("wrong after all")
    return HttpResponse()


urlpatterns = [
    path("place/", place),
    path("order-whole/", order_whole),
    path("handle/", handle),
    path("emit-and-fail/", emit_and_fail),
]
