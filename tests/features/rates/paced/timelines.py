"""A timeline with rates, for worker processes of the tests."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from uuid import uuid4

from asgiref.sync import sync_to_async

from tests.testapp.models import Effect, Order
from timeline import (
    Limit,  # of limits
    Rate,
    RateLimited,
    Timeline,
    task,
)


class PacedCase(Timeline):
    """Says when a handler is entered; slowly, so that it is killed anywhere."""

    entity = "testapp.Order"

    @task(atomic=False, rate=Rate("6/s", key="outside"))
    def call(self, order: Order) -> None:
        self.enter("call", order)
        time.sleep(0.02)

    @task(atomic=False, queue="loop", rate=Rate("6/s", key="outside"))  # Workers of green threads run no coroutines.
    async def call_async(self, order: Order) -> None:
        await sync_to_async(self.enter)("call_async", order)
        await asyncio.sleep(0.02)

    @task(
        rate=Rate("6/s", key="outside"),
        limit=Limit(2),  # of limits
    )
    def call_atomic(self, order: Order) -> None:
        self.enter("call_atomic", order)

    @task(atomic=False, rate=Rate("50/s", key="slow"))
    def refused_once(self, order: Order) -> None:
        """The first one that is entered is told to wait."""
        self.enter("refused_once", order)
        folder = Path(os.environ["TEST_FOLDER"])
        try:
            (folder / "refused").touch(exist_ok=False)
        except FileExistsError:
            return
        raise RateLimited(4)

    def enter(self, name: str, order: Order) -> None:
        line = json.dumps({"name": name, "order": order.pk, "pid": os.getpid(), "at": time.time()})
        with (Path(os.environ["TEST_FOLDER"]) / "entered").open("a") as entered:
            entered.write(f"{line}\n")
        Effect.objects.create(name=f"{name} {uuid4()}")
