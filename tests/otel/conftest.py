"""What tests of spans share."""

from __future__ import annotations

from tests.otel.spans import spans

__all__ = ["spans"]
