"""pretix chooses its addresses by the host's name; this one hands ours on."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.urls import set_urlconf


class Addresses:
    """Stands behind pretix's MultiDomainMiddleware."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer below ``/operations/`` with the addresses of ``site_urls``."""
        if request.path_info.startswith("/operations/"):
            request.urlconf = "site_urls"
            set_urlconf(request.urlconf)
        return self.get_response(request)
