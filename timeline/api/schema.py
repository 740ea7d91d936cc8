"""The OpenAPI document: what it says beside what the views and serializers say themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from drf_spectacular.extensions import OpenApiSerializerExtension, OpenApiSerializerFieldExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers

from timeline.api.fields import ChoiceOf, StrictSerializer
from timeline.api.preconditions import HEADER, KEYS, REPLAYED, TAGS
from timeline.api.problems import MEDIA_TYPE

Method = TypeVar("Method", bound=Callable[..., Any])

_MEANINGS: Final = {
    400: "Something is wrong with what was sent; `field` names it.",
    401: "Nobody is logged in.",
    403: "Nobody is logged in, or you may not do this.",
    404: "There is nothing here, or nothing that you may see.",
    409: "Not possible as things are; `remedy` says what is.",
    412: "It has changed since you looked; `remedy` says what to do.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    422: "This `Idempotency-Key` came before with another request.",
    429: "Too often; see the header `Retry-After`.",
}

_TAG: Final = {"type": "string"}
IF_MATCH: Final = OpenApiParameter(
    "If-Match",
    {"type": "string", "pattern": TAGS},
    OpenApiParameter.HEADER,
    description="The task's `ETag`, or its `seq` in quotation marks: nothing is done if it has changed since.",
)
IF_NONE_MATCH: Final = OpenApiParameter(
    "If-None-Match",
    _TAG,
    OpenApiParameter.HEADER,
    description="The `ETag` of the answer that you have.",
)
TAG: Final = OpenApiParameter(
    "ETag",
    _TAG,
    OpenApiParameter.HEADER,
    response=[200, 304],
    description="Begins with the task's `seq`; for `If-Match`.",
)
REPEATABLE: Final = [
    OpenApiParameter(
        HEADER,
        {"type": "string", "pattern": KEYS},
        OpenApiParameter.HEADER,
        description="A new one for each request, a UUID say. The same request with the same key, within 24 hours, does nothing "
        "and is answered as the first was.",
    ),
    OpenApiParameter(
        REPLAYED,
        {"type": "string", "enum": ["true"]},
        OpenApiParameter.HEADER,
        response=[200, 201, 202],
        description="This was done before, and is the answer of then, as far as you may see it now.",
    ),
]
UNCHANGED: Final = OpenApiResponse(description="It is as you have it.")

SETTINGS: Final[dict[str, Any]] = {
    "TITLE": "timeline",
    "DESCRIPTION": "The future of entities, kept as rows: see it, move it, call it off.",
    "VERSION": "1.0.0",
    "OAS_VERSION": "3.1.0",
    "COMPONENT_SPLIT_REQUEST": True,
    "CAMELIZE_NAMES": False,
    "PREPROCESSING_HOOKS": ["timeline.api.schema.only_ours"],
    # Not the usual one, which remembers for the whole process how the first document it saw calls its choices.
    "POSTPROCESSING_HOOKS": ["drf_spectacular.hooks.postprocess_schema_enum_id_removal"],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SWAGGER_UI_SETTINGS": {"deepLinking": False},  # Each would be a link within a button.
}
"""For ``manage.py spectacular --custom-settings``; or for ``SPECTACULAR_SETTINGS``, where a host has no other API."""


class ErrorSerializer(serializers.Serializer[Any]):
    """One of several mistakes."""

    field = serializers.CharField()
    detail = serializers.CharField()


class ProblemSerializer(serializers.Serializer[Any]):
    """What went wrong, as RFC 9457 has it."""

    type = serializers.CharField(help_text="`about:blank`, or `urn:timeline:` and the name of what happened.")
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    field = serializers.CharField(required=False, help_text="Which part of what was sent is meant.")
    remedy = serializers.CharField(required=False, help_text="What can be done about it.")
    changes = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="With 412: what has become of the task since you saw it, in sentences; who and why, where you may read that.",
    )
    errors = ErrorSerializer(  # type: ignore[assignment]
        many=True, required=False, help_text="All mistakes, where there may be several."
    )


class TimelineSchema(AutoSchema):
    """Takes part in the document whatever schema class the host's other views use."""

    def get_summary(self) -> str | None:
        """The first sentence of its description."""
        said: str | None = super().get_summary() or self.get_description()
        return said.partition(". ")[0].replace("\n", " ").removesuffix(".") if said else None

    def _get_request_body(self, direction: Any = "request") -> dict[str, Any] | None:
        """A body of which nothing by itself has to be there, but something, has to be there as well."""
        found: dict[str, Any] | None = super()._get_request_body(direction)  # type: ignore[no-untyped-call]
        if found:
            body: Any = self.get_request_serializer()
            found |= {"required": True} if getattr(body, "least", 0) else {}
        return found


class ClosedBody(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Says of bodies that they have no other fields."""

    target_class = StrictSerializer
    match_subclasses = True

    def map_serializer(self, auto_schema: AutoSchema, direction: Any) -> dict[str, Any]:
        found = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)  # type: ignore[no-untyped-call]
        least = {"minProperties": self.target.least} if self.target.least else {}
        return {**found, "additionalProperties": False, **least}


class NamedChoices(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    """Gives choices a schema of their own, which others refer to."""

    target_class = ChoiceOf

    def get_name(self) -> str:
        name: str = self.target.kind.__name__
        return name

    def map_serializer_field(self, auto_schema: AutoSchema, direction: Any) -> dict[str, Any]:
        return {"type": "string", "enum": [choice.value for choice in self.target.kind]}


def described(**options: Any) -> Callable[[Method], Method]:
    """Describe a method as ``extend_schema`` does, whatever schema class the host's settings name."""

    def decorate(method: Method) -> Method:
        method.schema = TimelineSchema  # type: ignore[attr-defined]
        extend_schema(**options)(method)
        del method.schema  # type: ignore[attr-defined]
        return method

    return decorate


def answers(*statuses: int, **good: Any) -> dict[Any, Any]:
    """What an operation answers: ``ok``, ``created`` and ``accepted`` (200, 201, 202), and the problems that it alone meets."""
    codes = {"ok": 200, "created": 201, "accepted": 202}
    found: dict[Any, Any] = {codes[name]: serializer for name, serializer in good.items()}
    for status in sorted({400, 401, 403, 429, *statuses}):
        found[status, MEDIA_TYPE] = OpenApiResponse(ProblemSerializer, description=_MEANINGS[status])
    return found


def only_ours(endpoints: list[tuple[str, str, str, Any]], **_extra: Any) -> list[tuple[str, str, str, Any]]:
    """Leave out what else the host's site has."""
    return [endpoint for endpoint in endpoints if isinstance(getattr(endpoint[3].cls, "schema", None), TimelineSchema)]
