"""
What tracing costs: ``BENCHMARK_TRACING`` in the environment of other benchmarks, such as ``make bench``.

``api``: the app ``timeline.otel`` is there, and no provider; ``sdk``: each span is made, and dropped where it would be sent;
``sampled``: of a hundred traces, one is.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

APPS = ["timeline.otel"] if "BENCHMARK_TRACING" in os.environ else []


def set_up() -> None:
    """Set a provider, if one is asked for."""
    how = os.environ.get("BENCHMARK_TRACING", "")
    if how not in ("sdk", "sampled"):
        return
    from opentelemetry import trace
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON, ParentBasedTraceIdRatio

    class Dropping(SpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:  # noqa: ARG002
            return SpanExportResult.SUCCESS

    provider = TracerProvider(sampler=ALWAYS_ON if how == "sdk" else ParentBasedTraceIdRatio(0.01))
    provider.add_span_processor(BatchSpanProcessor(Dropping()))
    trace.set_tracer_provider(provider)
