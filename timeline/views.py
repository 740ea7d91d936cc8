"""Health for probes, as JSON."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from timeline.clocks import story_now
from timeline.dispatch.worker_signs import tell_if_unpolled, tell_troubles
from timeline.policy import get_policy
from timeline.reading.diagnosis import databases, diagnose
from timeline.store.callers import who_asks


@require_safe
@never_cache
def health(request: HttpRequest, *_captured: object, **_named: object) -> JsonResponse:
    """
    Say whether what is due is run: status 200, or 503 if not. Put it where your probes look, below whatever prefix.

    What was discarded lately, and what is wrong beside tasks, is in the figures only: a probe that failed for it would take the
    site out of service.

    Where nobody has polled for two minutes, or nobody sends webhooks that wait, people are told: once an hour.

    Everybody reads ``{"status": "well"}`` or ``"sick"``; who may do so by the policy also reads the figures of each database.
    """
    found = [diagnose(now=story_now(alias), using=alias) for alias in databases()]
    well = all(each.working for each in found)
    for each in found:
        if not each.is_polled:
            tell_if_unpolled(using=each.database)
        if each.troubles:
            tell_troubles(using=each.database)
    body: dict[str, Any] = {"status": "well" if well else "sick"}
    if get_policy().sees_health(who_asks(request)):
        body["databases"] = [each.as_data() for each in found]
    return JsonResponse(body, status=200 if well else 503)
