"""Timelines whose spans tests look at, and what takes the spans down."""

from __future__ import annotations

import json
import logging
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from tests.testapp.models import Effect, Order
from timeline import Timeline, after, step, task
from timeline.exceptions import Cancel
from timeline.shortcuts import emit

logger = logging.getLogger("tests.otel")


class Tale(Timeline):
    """Pays in steps, tells, and follows up."""

    entity = "testapp.Order"
    starts_on = "tale.begun"
    exits = {"tale.over": "over"}

    @task(after(seconds=0), atomic=False)
    def pay(self, order: Order) -> dict[str, str]:
        """Two steps, and an event in between."""
        logger.warning("paying")
        self.charge()
        emit("tale.paid", order, payload={"card": "4111"})
        self.receipt()
        return {"secret": "4111"}

    @step(atomic=False)
    def charge(self) -> str:
        return "charged"

    @step(atomic=False)
    def receipt(self) -> str:
        """Be killed here in the first attempt, where the test wants that."""
        if "DIE" in os.environ and self.task.attempt == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return "receipt"

    @task(after(pay, seconds=0))
    def thank(self, order: Order) -> None:
        """What follows."""
        Effect.objects.create(name="thanked")


class Trouble(Timeline):
    """What goes otherwise."""

    entity = "testapp.Order"

    @task()
    def fail(self, order: Order) -> None:
        """Write, emit, and fail."""
        Effect.objects.create(name="undone")
        emit("trouble.seen", order)
        raise ValueError("card 4111 is refused")

    @task()
    def cancel(self, order: Order) -> None:
        raise Cancel("not wanted")

    @task(bulk=10, atomic=False)
    def together(self, orders: list[Order]) -> None:
        """For many."""

    @task(atomic="shared")
    def shared(self, order: Order) -> None:
        """In one transaction."""

    @task(atomic=False)
    async def wait(self, order: Order) -> None:
        """Side by side."""


def told(span: ReadableSpan) -> dict[str, Any]:
    """A span as plain data."""
    own = span.get_span_context()
    assert own is not None
    return {
        "name": span.name,
        "trace": own.trace_id,
        "id": own.span_id,
        "parent": span.parent.span_id if span.parent else None,
        "links": [link.context.span_id for link in span.links],
        "kind": span.kind.name,
        "status": span.status.status_code.name,
        "attributes": dict(span.attributes or {}),
        "start": span.start_time,
        "end": span.end_time,
    }


class ToFile(SpanExporter):
    """Writes each span as a line, at once: of a process that is killed, those that had ended are there."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        with self._path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(told(span)) + "\n" for span in spans)
        return SpanExportResult.SUCCESS
