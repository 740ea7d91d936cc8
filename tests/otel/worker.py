"""An embedded worker whose spans go to a file: ``python -m tests.otel.worker <name> <file> [options]``."""

from __future__ import annotations

import sys
from pathlib import Path

import django
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

django.setup()

from django.core.management import call_command  # noqa: E402 (Django is set up first)

from tests.otel.tales import Tale, ToFile  # noqa: E402
from timeline.testing import only_timelines  # noqa: E402


def main(name: str, file: str, *options: str) -> None:
    """Work until told to stop."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(ToFile(Path(file))))
    trace.set_tracer_provider(provider)
    with only_timelines(Tale):
        call_command("timeline_worker", "--name", name, *options)


if __name__ == "__main__":
    main(*sys.argv[1:])
