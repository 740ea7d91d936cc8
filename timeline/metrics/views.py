"""The page that Prometheus scrapes."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from timeline.conf import get_settings
from timeline.metrics.collecting import TimelineCollector
from timeline.policy import get_policy
from timeline.store.callers import who_asks


@login_not_required
@require_safe
@never_cache
def metrics(request: HttpRequest, *_captured: object, **_named: object) -> HttpResponse:
    """
    Tell the metrics, in the format that the scraper asks for.

    To whom brings ``TIMELINE["METRICS_TOKEN"]`` as ``Authorization: Bearer …``, or is logged in and sees health by the policy.
    Everybody else is answered with 401, before anything is read.
    """
    if not (_brings_token(request) or get_policy().sees_health(who_asks(request))):
        return HttpResponse(status=401, headers={"WWW-Authenticate": 'Bearer realm="timeline"'})
    registry = CollectorRegistry()
    registry.register(TimelineCollector())
    encode, kind = _encoder(request.headers.get("Accept", ""))
    return HttpResponse(encode(registry), content_type=kind)


def _encoder(accept: str) -> tuple[Callable[[CollectorRegistry], bytes], str]:
    """Find the format that is asked for; the plain one, where its version is no number: the library compares it with one."""
    try:
        return choose_encoder(accept)
    except TypeError:
        return choose_encoder("")


def _brings_token(request: HttpRequest) -> bool:
    token = get_settings().METRICS_TOKEN
    scheme, _blank, given = request.headers.get("Authorization", "").partition(" ")
    return bool(token) and scheme.lower() == "bearer" and constant_time_compare(given.strip(), token)
