"""A timeline whose tasks fail for good, for worker processes of the tests."""

from __future__ import annotations

import time
from datetime import timedelta

from tests.testapp.models import Effect, Order
from timeline import Retry, Timeline, task


class FailingCase(Timeline):
    """Fails twice, slowly, and tells so in a transaction."""

    entity = "testapp.Order"

    @task()
    def tell(self, order: Order) -> None:
        Effect.objects.create(name=self.task.payload["failed"]["task"])
        time.sleep(0.02)

    @task(atomic=False, retry=Retry(max_attempts=2, base=timedelta(seconds=0.1), jitter=0), on_failure=tell)
    def work(self, order: Order) -> None:
        time.sleep(0.02)
        raise ValueError("the bank is closed")
