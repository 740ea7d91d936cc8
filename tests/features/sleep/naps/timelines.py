"""A timeline that sleeps, for worker processes of the tests."""

from __future__ import annotations

import time
from datetime import timedelta

from tests.testapp.models import Effect, Order
from timeline import Timeline, step, task

NAP = timedelta(seconds=1)


class NapCase(Timeline):
    """Writes an effect, sleeps, and writes another one; slowly, so that it is killed anywhere."""

    entity = "testapp.Order"

    @task(atomic=False)
    def work(self, order: Order) -> str:
        self.write(f"{order.pk} before")
        time.sleep(0.03)
        self.sleep(NAP)
        time.sleep(0.03)
        self.write.keyed("behind")(f"{order.pk} behind")
        return "done"

    @step
    def write(self, name: str) -> None:
        Effect.objects.create(name=name)
