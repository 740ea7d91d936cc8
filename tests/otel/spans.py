"""A tracer of the test, and the spans it has made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.otel.tales import told
from timeline.otel import tracers


class Spans:
    """What has ended so far."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("tests")

    def all(self) -> list[dict[str, Any]]:
        return [told(span) for span in self.exporter.get_finished_spans()]

    def named(self, name: str) -> list[dict[str, Any]]:
        return [span for span in self.all() if span["name"] == name]

    def one(self, name: str) -> dict[str, Any]:
        """The only one of this name."""
        [span] = self.named(name)
        return span

    def clear(self) -> None:
        self.exporter.clear()


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spans]:
    """Spans of this test; the provider is no other test's."""
    made = Spans()
    monkeypatch.setattr(tracers, "_tracer", made.provider.get_tracer("timeline"))
    yield made
    made.provider.shutdown()
