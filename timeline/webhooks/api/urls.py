"""Routes of this app below those of the API."""

from __future__ import annotations

from django.urls import URLPattern, path

from timeline.webhooks.api.endpoints import (
    Deliveries,
    Disable,
    Enable,
    Endpoints,
    OneDelivery,
    OneEndpoint,
    Replay,
    Rotate,
    Sample,
)


def routes(using: str) -> list[URLPattern]:
    """Make the addresses, of one database; see ``timeline.api.urls.routes``."""
    one = "webhooks/endpoints/<uuid:pk>/"
    return [
        path("webhooks/endpoints/", Endpoints.as_view(using=using), name="webhook-endpoints"),
        path(one, OneEndpoint.as_view(using=using), name="webhook-endpoint"),
        path(f"{one}disable/", Disable.as_view(using=using), name="webhook-endpoint-disable"),
        path(f"{one}enable/", Enable.as_view(using=using), name="webhook-endpoint-enable"),
        path(f"{one}rotate/", Rotate.as_view(using=using), name="webhook-endpoint-rotate"),
        path(f"{one}test/", Sample.as_view(using=using), name="webhook-endpoint-test"),
        path(f"{one}replay/", Replay.as_view(using=using), name="webhook-endpoint-replay"),
        path("webhooks/deliveries/", Deliveries.as_view(using=using), name="webhook-deliveries"),
        path("webhooks/deliveries/<int:pk>/", OneDelivery.as_view(using=using), name="webhook-delivery"),
    ]
