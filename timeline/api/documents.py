"""The API's own documents: the schema, and pages to read it and to try it out, from this server alone."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.request import Request
from rest_framework.response import Response

from timeline.api.base import LOGGED_IN, Private, TimelineAPI
from timeline.api.describing import our_settings


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
        """Describe the API as it is mounted here."""
        with our_settings():
            generator: Any = OfOneDatabase(self.using)
            return Response(generator.get_schema(request=request, public=True))


# Its script is a file of its own; but it brings styles and small pictures within the page.
CONTENT_SECURITY_POLICY: Final = "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'"


class DocsView(Private, SpectacularSwaggerSplitView):
    """The page to try it out; without JavaScript it leads to the document."""

    template_name = "timeline/api.html"
    permission_classes = LOGGED_IN
    title = "timeline"
    schema = None

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Show them with the files that come with the package ``drf-spectacular-sidecar``."""
        self.url_name = f"{request.resolver_match.namespace}:schema"  # type: ignore[union-attr]
        with our_settings():
            response: Response = super().get(request, *args, **kwargs)  # type: ignore[no-untyped-call]
        if "script" not in request.query_params:
            response.data["schema_url"] = self._get_schema_url(request)  # type: ignore[no-untyped-call]
        response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        return response
