"""What is done to an endpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.utils.translation import gettext_lazy
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response

from timeline.api.preconditions import RequestOutcome, answer_once
from timeline.api.requests import ReasonBody
from timeline.api.schema import REPEATABLE, answers, described
from timeline.store.isolation_level import atomic
from timeline.webhooks.api.base import WebhooksView
from timeline.webhooks.api.endpoints import answer_with_secret
from timeline.webhooks.api.serializers import (
    EndpointSerializer,
    EndpointWithSecretSerializer,
    ReplayBody,
    ReplayedSerializer,
    SampleSerializer,
)
from timeline.webhooks.disabling import disable, enable, replay, replayable, rotate
from timeline.webhooks.models import Disabled, Endpoint
from timeline.webhooks.send import send_sample

_CHANGED = answers(404, 413, 415, 422, ok=EndpointSerializer)


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

    def once(self, request: Request, act: Callable[[], Any]) -> Response:
        """Do it, with all that it writes in one transaction, and answer alike when the request is sent again."""
        using = self.get_using()

        def whole() -> RequestOutcome:
            with atomic(using=using):
                return RequestOutcome(act())

        return answer_once(request, whole, lambda said, _again: said, using=using)


class Disable(Acting):
    @described(operation_id="webhook_endpoint_disable", request=ReasonBody, parameters=REPEATABLE, responses=_CHANGED)
    def post(self, request: Request, pk: UUID) -> Response:
        """Disable an endpoint. What waits is cancelled, and can be sent again later. One that is disabled stays as it is."""
        self.find(pk)
        body = ReasonBody(data=request.data)
        body.is_valid(raise_exception=True)
        reason = body.validated_data["reason"]

        def act() -> Any:
            endpoint = self.locked(pk)
            if endpoint.is_enabled:
                disable(endpoint, Disabled.OPERATOR, reason=reason, now=self.now, using=self.get_using())
            return self.told(endpoint)

        return self.once(request, act)


class Enable(Acting):
    @described(operation_id="webhook_endpoint_enable", request=None, parameters=REPEATABLE, responses=_CHANGED)
    def post(self, request: Request, pk: UUID) -> Response:
        """Enable an endpoint, from now on; replay sends what was cancelled. One that is enabled stays as it is."""
        self.find(pk)

        def act() -> Any:
            endpoint = self.locked(pk)
            if not endpoint.is_enabled:
                enable(endpoint, now=self.now, using=self.get_using())
            return self.told(endpoint)

        return self.once(request, act)


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
        body = ReplayBody(data=request.data)
        body.is_valid(raise_exception=True)
        given, using = body.validated_data, self.get_using()
        until = given.get("until") or self.now
        wanted = {"since": given["since"], "until": until, "missed": not given["arrived"], "using": using}

        def act() -> Any:
            endpoint = self.locked(pk)
            if not (endpoint.is_enabled or given["dry_run"]):
                raise NotWhileDisabled
            only_count = given["dry_run"]
            count = replayable(endpoint, **wanted).count() if only_count else replay(endpoint, now=self.now, **wanted)
            return ReplayedSerializer({"count": count, "dry_run": only_count}).data

        return self.once(request, act)
