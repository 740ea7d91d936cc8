"""A processor of the host's that raises costs spans, and nothing else."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

from tests.otel.tales import Tale, Trouble
from timeline.models import ScheduledTask
from timeline.otel import tracers
from timeline.otel.spans import polled
from timeline.shortcuts import emit
from timeline.testing import StoryClock, only_timelines


class Raises(SpanProcessor):
    """Raises when spans begin, or when they end."""

    def __init__(self, when):
        self.when = when

    def on_start(self, span, parent_context=None):
        """Begin."""
        if self.when == "start":
            raise RuntimeError("on_start")

    def on_end(self, span):
        """End."""
        if self.when == "end":
            raise RuntimeError("on_end")


@pytest.fixture(params=["start", "end"])
def raising(request, monkeypatch):
    """A tracer whose processor raises."""
    provider = TracerProvider()
    provider.add_span_processor(Raises(request.param))
    monkeypatch.setattr(tracers, "_tracer", provider.get_tracer("timeline"))


@pytest.mark.usefixtures("raising")
class TestProcessorThatRaises:
    def test_fails_no_event_and_no_task(self, db, now, order, caplog):
        with only_timelines(Tale, Trouble), StoryClock(now) as clock:
            emit("tale.begun", order)
            clock.advance(seconds=1)

        assert ScheduledTask.objects.get(task_key="tale.pay").state == "completed"
        assert ScheduledTask.objects.get(task_key="tale.pay").attempt == 1
        assert "span" in caplog.text

    def test_fails_no_poll(self, caplog):
        polled(0.1, {"staged": 1})

        assert "span" in caplog.text
