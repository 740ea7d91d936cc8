"""The API's own documents: the schema, and pages to read it and to try it out, from this server alone."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.request import Request
from rest_framework.response import Response

from timeline.api.base import LOGGED_IN, TimelineAPI
from timeline.api.describing import our_settings


class SchemaView(TimelineAPI):
    """The OpenAPI document."""

    schema = None  # type: ignore[assignment]

    def get(self, request: Request) -> Response:
        """Describe the API as it is mounted here."""
        with our_settings():
            generator: Any = SchemaGenerator()  # type: ignore[no-untyped-call]
            return Response(generator.get_schema(request=request, public=True))


# Its script is a file of its own; but it brings styles and small pictures within the page.
CONTENT_SECURITY_POLICY: Final = "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'"


class DocsView(SpectacularSwaggerSplitView):
    """The pages."""

    permission_classes = LOGGED_IN
    url_name = "timeline_api:schema"
    title = "timeline"
    schema = None

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Show them with the files that come with the package ``drf-spectacular-sidecar``."""
        with our_settings():
            response: Response = super().get(request, *args, **kwargs)  # type: ignore[no-untyped-call]
        response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        return response
