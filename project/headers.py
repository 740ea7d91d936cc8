"""What the site tells browsers to refuse."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

POLICY = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors {}; object-src 'none'"


class ContentSecurityPolicy:
    """Nothing from elsewhere, and nothing inline, unless a view says otherwise for its own page."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Add the header."""
        response = self.get_response(request)
        # The page of the demo shows others beside each other.
        by_whom = "'self'" if settings.X_FRAME_OPTIONS == "SAMEORIGIN" else "'none'"
        response.headers.setdefault("Content-Security-Policy", POLICY.format(by_whom))
        return response
