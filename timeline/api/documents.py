"""The API's own documents: the schema, and pages to read it and to try it out, from this server alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from django.conf import settings
from django.urls import reverse
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.settings import IMPORT_STRINGS, SPECTACULAR_DEFAULTS, SpectacularSettings, spectacular_settings
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.request import Request
from rest_framework.response import Response

from timeline.api.base import LOGGED_IN, Private, TimelineAPI
from timeline.api.schema import SETTINGS

_OWN: Final[ContextVar[SpectacularSettings | None]] = ContextVar("timeline_api_settings", default=None)

# Its script is a file of its own; but it brings styles and small pictures within the page.
CONTENT_SECURITY_POLICY: Final = "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'"


class SettingsOfWhoeverAsks(SpectacularSettings):
    """The settings of this thread of work where it has any, else those of the site."""

    def __getattribute__(self, name: str) -> Any:
        own = None if name.startswith("_") else _OWN.get()
        return super().__getattribute__(name) if own is None or own is self else getattr(own, name)


spectacular_settings.__class__ = SettingsOfWhoeverAsks


@contextmanager
def our_settings() -> Iterator[None]:
    """Describe with ``SETTINGS``, and with what the site's say beside them: of servers and of security, say."""
    given: Any = {**getattr(settings, "SPECTACULAR_SETTINGS", {}), **SETTINGS}
    defaults: Any = SPECTACULAR_DEFAULTS
    token = _OWN.set(SpectacularSettings(given, defaults, IMPORT_STRINGS))
    try:
        yield
    finally:
        _OWN.reset(token)


class OfOneDatabase(SchemaGenerator):
    """Leaves out what the site has for the tasks of other databases."""

    def __init__(self, using: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.using = using

    def _initialise_endpoints(self) -> None:
        super()._initialise_endpoints()  # type: ignore[no-untyped-call]
        found: Any = self.endpoints
        self.endpoints = [endpoint for endpoint in found if _using(endpoint[3]) == self.using]


def _using(view: Any) -> str:
    using: str = view.initkwargs.get("using", view.cls.using)
    return using


class SchemaView(TimelineAPI):
    """The OpenAPI document."""

    schema = None  # type: ignore[assignment]

    def get(self, request: Request) -> Response:
        with our_settings():
            generator: Any = OfOneDatabase(self.using)
            return Response(generator.get_schema(request=request, public=True))


class DocsView(Private, SpectacularSwaggerSplitView):
    """The page to try it out; without JavaScript it leads to the document."""

    template_name = "timeline/api.html"
    permission_classes = LOGGED_IN
    title = "timeline"
    schema = None

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Show them with the files that come with the package ``drf-spectacular-sidecar``."""
        found: Any = request.resolver_match
        self.url = reverse(f"{found.namespace}:schema", args=found.args, kwargs=found.kwargs)
        with our_settings():
            response: Response = super().get(request, *args, **kwargs)  # type: ignore[no-untyped-call]
        if "script" not in request.query_params:
            response.data["schema_url"] = self._get_schema_url(request)  # type: ignore[no-untyped-call]
        response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        return response
