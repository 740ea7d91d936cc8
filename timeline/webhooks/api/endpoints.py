"""Endpoints: listed, made, read, changed and deleted."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.core.exceptions import ValidationError as Invalid
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from timeline.api.conditions import not_modified
from timeline.api.pagination import DESCRIBED
from timeline.api.repeating import Outcome, answer_once
from timeline.api.schema import IF_NONE_MATCH, REPEATABLE, UNCHANGED, answers, described
from timeline.store.isolating import atomic
from timeline.webhooks.api.base import WebhooksView, answer_page, key_in
from timeline.webhooks.api.conditions import IF_MATCH, TAG, check_seen, tag_of
from timeline.webhooks.api.requests import EndpointBody
from timeline.webhooks.api.serializers import (
    EndpointPageSerializer,
    EndpointSerializer,
    EndpointWithSecretSerializer,
)
from timeline.webhooks.deleting import delete_endpoints
from timeline.webhooks.models import Endpoint
from timeline.webhooks.opening import check_endpoint, open_endpoint

_PAGES: Final = [
    OpenApiParameter("cursor", {**DESCRIBED["cursor"], "format": "uuid"}),
    OpenApiParameter("limit", DESCRIBED["limit"]),
]


def told(endpoint: Endpoint) -> Any:
    """An endpoint as it is answered."""
    return EndpointSerializer(endpoint).data


class Endpoints(WebhooksView):
    """All of them."""

    parameters = ("cursor", "limit")

    @described(operation_id="webhook_endpoints", parameters=_PAGES, responses=answers(ok=EndpointPageSerializer))
    def get(self, request: Request) -> Response:
        """List endpoints, in the order in which they were made."""
        endpoints = self.endpoints().order_by("pk")
        if "cursor" in request.query_params:
            endpoints = endpoints.filter(pk__gt=key_in(request, "cursor"))
        return answer_page(request, endpoints, EndpointSerializer)

    @described(
        operation_id="webhook_endpoint_create",
        request=EndpointBody,
        parameters=REPEATABLE,
        responses=answers(413, 415, 422, created=EndpointWithSecretSerializer),
    )
    def post(self, request: Request) -> Response:
        """Make an endpoint. Its secret is in this answer, and nowhere else."""
        self.demand("add_endpoint")
        body = EndpointBody(data=request.data)
        body.is_valid(raise_exception=True)
        return answer_with_secret(request, partial(self._open, body.validated_data), using=self.get_using())

    def _open(self, given: dict[str, Any]) -> tuple[Outcome, str]:
        try:
            endpoint, secret = open_endpoint(**given, now=self.now, using=self.get_using())
        except Invalid as error:
            raise ValidationError(error.message_dict) from None
        return Outcome(told(endpoint), status.HTTP_201_CREATED), secret


class OneEndpoint(WebhooksView):
    """One of them."""

    @described(
        operation_id="webhook_endpoint",
        parameters=[IF_NONE_MATCH, TAG],
        responses={**answers(404, ok=EndpointSerializer), 304: UNCHANGED},
    )
    def get(self, request: Request, pk: UUID) -> Response:
        """Read an endpoint."""
        answer = Response(told(self.endpoints().get(pk=pk)))
        not_modified(request, answer, tag_of(answer.data))
        return answer

    @described(
        operation_id="webhook_endpoint_change",
        request=EndpointBody(partial=True),
        parameters=[IF_MATCH],
        responses=answers(404, 412, 413, 415, ok=EndpointSerializer),
    )
    def patch(self, request: Request, pk: UUID) -> Response:
        """Change what is given of an endpoint. What waits is sent to the new URL."""
        self.endpoints().get(pk=pk)
        self.demand("change_endpoint")
        body = EndpointBody(data=request.data, partial=True)
        body.is_valid(raise_exception=True)
        with atomic(using=self.get_using()):
            endpoint = self.locked(pk)
            check_seen(request, told(endpoint))
            for name, value in body.validated_data.items():
                setattr(endpoint, name, value)
            _check_given(endpoint, body.validated_data)
            if body.validated_data:
                endpoint.save(using=self.get_using(), update_fields=sorted(body.validated_data))
        return Response(told(endpoint))

    @described(
        operation_id="webhook_endpoint_delete",
        request=None,
        parameters=[IF_MATCH],
        responses={**answers(404, 412), 204: OpenApiResponse(description="It is gone.")},
    )
    def delete(self, request: Request, pk: UUID) -> Response:
        """Delete an endpoint, with its deliveries and their log. Disable it to keep them."""
        self.endpoints().get(pk=pk)
        self.demand("delete_endpoint")
        with atomic(using=self.get_using()):
            check_seen(request, told(self.locked(pk, to_delete=True)))
            delete_endpoints([pk], using=self.get_using())
        return Response(status=status.HTTP_204_NO_CONTENT)


def _check_given(endpoint: Endpoint, given: Mapping[str, Any]) -> None:
    """See that what is given may be. What was there before is looked at again at each delivery."""
    try:
        check_endpoint(endpoint.url, endpoint.topics)
    except Invalid as error:
        if problems := {name: said for name, said in error.message_dict.items() if name in given}:
            raise ValidationError(problems) from None


def answer_with_secret(request: Request, act: Any, *, using: str) -> Response:
    """
    Answer what has got a secret. What is kept of the answer, for an ``Idempotency-Key``, is without it.

    Args:
        request: As it came.
        act: Gives an outcome, and the secret.
        using: Database alias.
    """
    secrets: list[str] = []

    def once() -> Outcome:
        outcome, secret = act()
        secrets.append(secret)
        return Outcome(outcome.said, outcome.status)

    return answer_once(
        request, once, lambda said, _again: {**said, "secret": secrets[0] if secrets else None}, using=using
    )
