"""How often: two scopes, ``timeline.read`` and ``timeline.write``, unlimited until the host sets a rate."""

from __future__ import annotations

from typing import Any

from rest_framework.settings import api_settings
from rest_framework.throttling import ScopedRateThrottle


class TimelineThrottle(ScopedRateThrottle):
    """Counts by the scope of the view's request; no rate in ``DEFAULT_THROTTLE_RATES`` means no limit."""

    scope_attr = "timeline_scope"

    def get_rate(self) -> str | None:
        """Read the rate as it is set now."""
        rates: dict[str, Any] = api_settings.DEFAULT_THROTTLE_RATES
        rate: str | None = rates.get(self.scope or "")
        return rate
