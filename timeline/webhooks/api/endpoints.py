"""Endpoints: listed, made, read, changed, deleted, and what else is done to them; and their deliveries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.core.exceptions import ValidationError as Invalid
from django.db.models import Prefetch
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import status
from rest_framework.exceptions import APIException, NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from timeline.api.pagination import DESCRIBED, answer_page
from timeline.api.preconditions import RequestOutcome, answer_once, not_modified
from timeline.api.requests import ReasonBody
from timeline.api.schema import IF_NONE_MATCH, REPEATABLE, UNCHANGED, answers, described
from timeline.store.transactions import atomic
from timeline.webhooks.api.base import IF_MATCH, TAG, WebhooksView, check_seen, key_in, moment_in, tag_of
from timeline.webhooks.api.serializers import (
    DeliveryDetailSerializer,
    DeliveryPageSerializer,
    DeliverySerializer,
    EndpointBody,
    EndpointPageSerializer,
    EndpointSerializer,
    EndpointWithSecretSerializer,
    ReplayBody,
    ReplayedSerializer,
    SampleSerializer,
)
from timeline.webhooks.disabling import delete_endpoints, disable, enable, replay, replayable, rotate
from timeline.webhooks.models import Attempt, Disabled, Endpoint, State
from timeline.webhooks.opening import check_endpoint, open_endpoint
from timeline.webhooks.send import send_sample

_PAGES: Final = [
    OpenApiParameter("cursor", {**DESCRIBED["cursor"], "format": "uuid"}),
    OpenApiParameter("limit", DESCRIBED["limit"]),
]

_CHANGED = answers(404, 413, 415, 422, ok=EndpointSerializer)
_LARGEST: Final = 2**63 - 1  # Keys of rows.
_MOMENT: Final = {"type": "string", "format": "date-time"}
_QUERY: Final = [
    OpenApiParameter("endpoint", {"type": "string", "format": "uuid"}, description="Those to this one."),
    OpenApiParameter("state", str, enum=sorted(State.values), description="Those in this state."),
    OpenApiParameter("since", _MOMENT, description="Those written from this moment on."),
    OpenApiParameter("until", _MOMENT, description="Those written before this moment."),
    OpenApiParameter("cursor", {"type": "string", "pattern": "^[0-9]{1,18}$", "description": "From a link to a page."}),
    OpenApiParameter("limit", DESCRIBED["limit"]),
]


class Endpoints(WebhooksView):
    parameters = ("cursor", "limit")

    @described(operation_id="webhook_endpoints", parameters=_PAGES, responses=answers(ok=EndpointPageSerializer))
    def get(self, request: Request) -> Response:
        """List endpoints, in the order in which they were made."""
        endpoints = self.endpoints().order_by("pk")
        if "cursor" in request.query_params:
            endpoints = endpoints.filter(pk__gt=key_in(request, "cursor"))
        return answer_page(request, endpoints, self.shown)

    @described(
        operation_id="webhook_endpoint_create",
        request=EndpointBody,
        parameters=REPEATABLE,
        responses=answers(413, 415, 422, created=EndpointWithSecretSerializer),
    )
    def post(self, request: Request) -> Response:
        """Make an endpoint. Its secret is in this answer, and nowhere else."""
        self.demand("add_endpoint")
        return answer_with_secret(request, partial(self._open, EndpointBody.read(request)), using=self.get_using())

    def _open(self, given: dict[str, Any]) -> tuple[RequestOutcome, str]:
        try:
            endpoint, secret = open_endpoint(**given, now=self.now, using=self.get_using())
        except Invalid as error:
            raise ValidationError(error.message_dict) from None
        return RequestOutcome(self.told(endpoint), status.HTTP_201_CREATED), secret


class OneEndpoint(WebhooksView):
    @described(
        operation_id="webhook_endpoint",
        parameters=[IF_NONE_MATCH, TAG],
        responses={**answers(404, ok=EndpointSerializer), 304: UNCHANGED},
    )
    def get(self, request: Request, pk: UUID) -> Response:
        """Read an endpoint."""
        answer = Response(self.told(self.endpoints().get(pk=pk)))
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
        given = EndpointBody.read(request, partial=True)
        with atomic(using=self.get_using()):
            endpoint = self.locked(pk)
            check_seen(request, self.told(endpoint))
            for name, value in given.items():
                setattr(endpoint, name, value)
            _check_given(endpoint, given)
            if given:
                endpoint.save(using=self.get_using(), update_fields=sorted(given))
        return Response(self.told(endpoint))

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
            check_seen(request, self.told(self.locked(pk, to_delete=True)))
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
    """Answer what has got a secret; what is kept for an ``Idempotency-Key`` is without it. ``act`` gives outcome and secret."""
    secrets: list[str] = []

    def once() -> RequestOutcome:
        outcome, secret = act()
        secrets.append(secret)
        return RequestOutcome(outcome.said, outcome.status)

    return answer_once(
        request, once, lambda said, _again: {**said, "secret": secrets[0] if secrets else None}, using=using
    )


class NotWhileDisabled(APIException):
    """Nothing is sent to an endpoint that is disabled."""

    status_code = 409
    default_detail = gettext_lazy("Nothing is sent to it: it is disabled. Enable it first.")


class Acting(WebhooksView):
    def find(self, pk: UUID) -> Endpoint:
        """The endpoint, for who may change it; ``Endpoint.DoesNotExist`` if they see none, else ``PermissionDenied``."""
        endpoint = self.endpoints().get(pk=pk)
        self.demand("change_endpoint")
        return endpoint

    def once(self, request: Request, pk: UUID, act: Callable[[Endpoint], Any]) -> Response:
        """Do it to the locked endpoint, in one transaction, and answer alike when the request is sent again."""
        using = self.get_using()

        def whole() -> RequestOutcome:
            with atomic(using=using):
                return RequestOutcome(act(self.locked(pk)))

        return answer_once(request, whole, using=using)


class Disable(Acting):
    @described(operation_id="webhook_endpoint_disable", request=ReasonBody, parameters=REPEATABLE, responses=_CHANGED)
    def post(self, request: Request, pk: UUID) -> Response:
        """Disable an endpoint. What waits is cancelled, and can be sent again later. One that is disabled stays as it is."""
        self.find(pk)
        reason = ReasonBody.read(request)["reason"]

        def act(endpoint: Endpoint) -> Any:
            if endpoint.is_enabled:
                disable(endpoint, Disabled.OPERATOR, reason=reason, now=self.now, using=self.get_using())
            return self.told(endpoint)

        return self.once(request, pk, act)


class Enable(Acting):
    @described(operation_id="webhook_endpoint_enable", request=None, parameters=REPEATABLE, responses=_CHANGED)
    def post(self, request: Request, pk: UUID) -> Response:
        """Enable an endpoint, from now on; replay sends what was cancelled. One that is enabled stays as it is."""
        self.find(pk)

        def act(endpoint: Endpoint) -> Any:
            if not endpoint.is_enabled:
                enable(endpoint, now=self.now, using=self.get_using())
            return self.told(endpoint)

        return self.once(request, pk, act)


class Rotate(Acting):
    @described(
        operation_id="webhook_endpoint_rotate",
        request=None,
        parameters=REPEATABLE,
        responses=answers(404, 413, 415, 422, ok=EndpointWithSecretSerializer),
    )
    def post(self, request: Request, pk: UUID) -> Response:
        """Give an endpoint another secret, which is in this answer and nowhere else. The one before signs for 24 hours more."""
        self.find(pk)
        using = self.get_using()

        def act() -> tuple[RequestOutcome, str]:
            with atomic(using=using):
                endpoint = self.locked(pk)
                secret = rotate(endpoint, now=self.now, using=using)
                return RequestOutcome(self.told(endpoint)), secret

        return answer_with_secret(request, act, using=using)


class Sample(Acting):
    @described(
        operation_id="webhook_endpoint_test",
        request=None,
        responses=answers(404, 413, 415, ok=SampleSerializer),
    )
    def post(self, request: Request, pk: UUID) -> Response:  # noqa: ARG002
        """Send a signed sample to an endpoint, and answer what came of it. Nothing of it is stored."""
        return Response(SampleSerializer(send_sample(self.find(pk), now=self.now)).data)


class Replay(Acting):
    @described(
        operation_id="webhook_endpoint_replay",
        request=ReplayBody,
        parameters=REPEATABLE,
        responses=answers(404, 409, 413, 415, 422, ok=ReplayedSerializer),
    )
    def post(self, request: Request, pk: UUID) -> Response:
        """Send again what of a time has not arrived, with the same ids and in the order of old; or count it."""
        self.find(pk)
        given, using = ReplayBody.read(request), self.get_using()
        until = given.get("until") or self.now
        wanted = {"since": given["since"], "until": until, "missed": not given["arrived"], "using": using}

        def act(endpoint: Endpoint) -> Any:
            if not (endpoint.is_enabled or given["dry_run"]):
                raise NotWhileDisabled
            only_count = given["dry_run"]
            count = replayable(endpoint, **wanted).count() if only_count else replay(endpoint, now=self.now, **wanted)
            return ReplayedSerializer({"count": count, "dry_run": only_count}).data

        return self.once(request, pk, act)


class Deliveries(WebhooksView):
    parameters = ("endpoint", "state", "since", "until", "cursor", "limit")

    @described(operation_id="webhook_deliveries", parameters=_QUERY, responses=answers(ok=DeliveryPageSerializer))
    def get(self, request: Request) -> Response:
        """List deliveries, the last one first."""
        asked, rows = request.query_params, self.deliveries().order_by("-pk")
        if "endpoint" in asked:
            rows = rows.filter(endpoint=key_in(request, "endpoint"))
        if "state" in asked:
            if asked["state"] not in State.values:
                raise ValidationError(
                    {"state": _("Give one of %(names)s.") % {"names": ", ".join(sorted(State.values))}}
                )
            rows = rows.filter(state=asked["state"])
        if "since" in asked:
            rows = rows.filter(created_at__gte=moment_in(request, "since"))
        if "until" in asked:
            rows = rows.filter(created_at__lt=moment_in(request, "until"))
        if "cursor" in asked:
            rows = rows.filter(pk__lt=_place(asked["cursor"]))
        return answer_page(request, rows, DeliverySerializer)


class OneDelivery(WebhooksView):
    @described(operation_id="webhook_delivery", responses=answers(404, ok=DeliveryDetailSerializer))
    def get(self, request: Request, pk: int) -> Response:  # noqa: ARG002
        """Read a delivery, with what is sent and the log of its tries."""
        if pk > _LARGEST:
            raise NotFound
        tries = Prefetch("tries", Attempt.objects.using(self.get_using()).order_by("pk"))
        return Response(DeliveryDetailSerializer(self.deliveries().prefetch_related(tries).get(pk=pk)).data)


def _place(cursor: str) -> int:
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 18):
        raise ValidationError({"cursor": _("Take it from a link to a next page.")})
    return int(cursor)
