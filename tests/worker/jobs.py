"""What workers of tests run, and the traces of it."""

from __future__ import annotations

from datetime import timedelta

from django.db import connection
from django.utils import timezone

from tests.testapp.models import Effect, Order
from timeline import Timeline, task


class Jobs(Timeline):
    """Leaves a trace of each run."""

    entity = "testapp.Order"

    @task(atomic=False)
    def first(self, order: Order) -> bool:
        Effect.objects.create(name="first")
        return connection.in_atomic_block

    @task(priority=-1)
    def urgent(self, order: Order) -> bool:
        Effect.objects.create(name="urgent")
        return connection.in_atomic_block


def just_now():
    return timezone.now() - timedelta(seconds=1)


def effects():
    return list(Effect.objects.order_by("pk").values_list("name", flat=True))
