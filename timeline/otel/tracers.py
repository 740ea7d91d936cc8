"""Which tracer makes the spans: the one of the host's provider. Without a provider, nobody traces."""

from __future__ import annotations

from opentelemetry import trace
from opentelemetry.trace import NoOpTracer, NoOpTracerProvider, ProxyTracerProvider, Tracer

from timeline import __version__

_tracer: Tracer | None = None


def tracer() -> Tracer | None:
    """The tracer; None: the host has set no provider in this process (yet), or has disabled it."""
    global _tracer
    if _tracer is None:
        provider = trace.get_tracer_provider()
        if not isinstance(provider, ProxyTracerProvider | NoOpTracerProvider):
            found = provider.get_tracer("timeline", __version__)
            _tracer = None if isinstance(found, NoOpTracer) else found
    return _tracer
