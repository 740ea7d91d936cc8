"""A coroutine: not in ``tasks``, as each worker imports that, and one of green threads would refuse to start."""

from __future__ import annotations

from asgiref.sync import sync_to_async

from tests.django_tasks.framework import task
from tests.testapp.models import Order


@task
async def wait(number):
    return [number, await sync_to_async(Order.objects.count)()]
