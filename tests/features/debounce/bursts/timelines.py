"""A timeline whose bursts take seconds, for worker processes of the tests."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Final

from tests.testapp.models import Effect, Order
from timeline import Debounce, Timeline, task

QUIET: Final = timedelta(seconds=0.4)
AT_LATEST: Final = timedelta(seconds=1.5)


class BurstCase(Timeline):
    """Rebuilds what is edited, in a transaction."""

    entity = "testapp.Order"

    @task(debounce=Debounce("burst.edited", quiet=QUIET, at_latest=AT_LATEST))
    def rebuild(self, order: Order) -> None:
        Effect.objects.create(name=str(self.task.pk))
        time.sleep(0.02)
