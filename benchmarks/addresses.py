"""Each page and list that the admin and the API have, and how it is opened: with which filters, orders and places."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final


def addresses() -> dict[str, list[tuple[str, str]]]:
    """Each route that is read: its name → what is asked, by name, as the end of the address or as all of it."""
    from django.urls import reverse
    from django.utils import timezone

    from timeline.models import BulkAction, Hold, ScheduledTask, TimelineRun
    from timeline.reading.dead_letters import causes_of
    from timeline.webhooks.models import Delivery, Endpoint

    tasks = ScheduledTask.objects.all()
    ahead = tasks.filter(state="scheduled", task_key="trial.expire").in_order()
    deep = ahead[ahead.count() // 3]
    mine = tasks.filter(task_key="owned.renew").in_order()[100]
    worn = tasks.get(occurrence="worn")
    dead = tasks.filter(state="discarded", task_key__startswith="trial.").first()
    cause = causes_of(tasks)[0]
    run = TimelineRun.objects.get(timeline="booking", entity_id="8")
    day = (timezone.now() + timezone.timedelta(days=5)).date()
    at = f"{deep.scheduled_at:%Y-%m-%dT%H:%M:%S.%f}"
    site, api = "admin:timeline_scheduledtask_", "timeline_api:"
    asked: dict[str, list[Any]] = {
        "admin:index": [""],
        f"{site}attention": [""],
        f"{site}changelist": [
            *("", "?state=overdue", "?state=scheduled", "?state=completed", "?state=discarded", "?state=cancelled"),
            *("?state=all", "?state=ended", "?state=active", "?timeline=trial", "?timeline=owned", "?timeline=gone"),
            *("?timeline=none", "?task=trial.expire", "?task=gone.rare&state=all"),
            *("?kind=accounts.user", "?kind=admin.logentry"),
            *(f"?day={day}", f"?day={day}&hour=7", f"?day={day}&timeline=trial", "?state=cancelled&reason=operator"),
            *("?state=cancelled&reason=guard&timeline=owned", "?state=discarded&ended=week", "?state=completed&ended=day"),
            "?state=ended&reason=exit&ended=week",
            *("?payload.plan=pro", "?payload.plan=none", "?payload.plan=none&state=all&timeline=trial", "?chosen=all"),
            *("?state=all&reason=entity_gone", "?reason=error", "?state=all&reason=exit"),
            *("?q=4711", "?q=accounts.user%204711", f"?q={deep.pk}", "?part", "?state=all&reason=operator&kind=accounts.user"),
            *(f"?after={at}%2B00:00_{deep.pk}", f"?before={at}%2B00:00_{deep.pk}"),
        ],
        f"{site}dead": ["", "?since=week", "?since=day&task=trial.remind", f"?group={dead.fingerprint}", f"?cause={cause.key}"],
        f"{site}redrive": [f"?group={dead.fingerprint}", f"?cause={cause.key}"],
        f"{site}inventory": ["", "?starts=clock"],
        f"{site}journal": ["", "?actor=operator", "?actor=nobody", f"?day={day}"],
        f"{site}timeline": [["trial"], ["owned"], ["booking"]],
        f"{site}health": ["", "?span=week", "?task=trial.remind"],
        f"{site}holds": [""],
        f"{site}hold": ["?what=everything", "?what=timeline:trial", "?what=task:trial.expire", "?what=queue:default",
                        "?label=accounts.user&id=4711"],
        f"{site}release": [f"?hold={hold.pk}" for hold in Hold.objects.open().oldest_first()[:3]] or [""],
        f"{site}limits": [""],
        f"{site}find": ["", "?words=4711", "?words=user4711@example.com", "?words=user47", "?words=nobody",
                        f"?words={deep.pk}"],
        f"{site}entity": ["?label=accounts.user&id=4711", "?label=accounts.user&id=10", "?label=accounts.user&id=13",
                          "?label=accounts.user&id=3", "?label=accounts.user&id=6",
                          f"?label=admin.logentry&id={mine.entity_id}", "?label=&id=",
                          "?label=portal.booking&id=8"],
        f"{site}people": ["", "?machine=booking"],
        f"{site}plan": ["", "?timeline=trial", "?timeline=owned", "?timeline=booking"],
        f"{site}apply": ["?timeline=trial", "?timeline=booking"],
        f"{site}hand_over": [f"?item={run.pk}"],
        f"{site}say": [f"?run={run.pk}&moves={run.moves}&event=operator.resolved"],
        f"{site}what_if": ["?label=accounts.user&id=4711"],
        f"{site}matching": ["", "?timeline=trial", "?state=discarded", "?state=discarded&action=redrive", "?action=cancel",
                            "?timeline=owned&action=cancel"],
        f"{site}bulk": [""],
        f"{site}bulk_action": [[BulkAction.objects.order_by("pk")[0].pk]],
        f"{site}act": [""],
        f"{site}change": [[deep.pk], [dead.pk], [mine.pk], [worn.pk]],
        "admin:accounts_user_change": [["4711"]],
        "admin:timeline_webhooks_endpoint_changelist": ["", "?o=-2"],
        "admin:timeline_webhooks_endpoint_add": [""],
        "admin:timeline_webhooks_endpoint_change": [[Endpoint.objects.order_by("pk")[0].pk]],
        "admin:timeline_webhooks_endpoint_replay": [[Endpoint.objects.order_by("pk")[0].pk]],
        "admin:timeline_webhooks_endpoint_history": [[Endpoint.objects.order_by("pk")[0].pk]],
        "admin:timeline_webhooks_endpoint_delete": [[Endpoint.objects.order_by("pk")[0].pk]],
        "admin:timeline_webhooks_delivery_changelist": ["", "?state__exact=failed", "?state__exact=waiting", "?p=9", "?o=7",
                                                        f"?endpoint__id__exact={Endpoint.objects.order_by('pk')[0].pk}"],
        "admin:timeline_webhooks_delivery_change": [[Delivery.objects.order_by("pk")[500].pk]],
        "admin:timeline_webhooks_delivery_history": [[Delivery.objects.order_by("pk")[500].pk]],
        f"{api}task-list": [
            *("", "?ordering=-scheduled_at", "?limit=100", "?state=completed", "?state=discarded", "?state=scheduled"),
            *("?state=scheduled&state=completed", "?state=discarded&state=retryable", "?state=pending", "?task=trial.remind"),
            *("?timeline=trial&state=scheduled&state=completed", "?task=trial.expire", "?task=gone.rare", "?timeline=trial"),
            *("?task=trial.remind&state=discarded", "?timeline=owned", "?timeline=nothing", f"?due_after={at}Z"),
            *("?due_after=2020-01-01T00:00:00Z&due_before=2040-01-01T00:00:00Z", f"?state=scheduled&due_after={at}Z"),
        ],
        f"{api}task-detail": [[deep.pk], [dead.pk], [mine.pk], [worn.pk]],
        f"{api}bulk-detail": [[BulkAction.objects.order_by("pk")[0].pk]],
        f"{api}dead-letters": [""],
        f"{api}my-tasks": [""],
        f"{api}user-tasks": [["4711"], ["10"], ["6"]],
        f"{api}entity-tasks": [["accounts.user", "4711"], ["accounts.user", "6"], ["admin.logentry", mine.entity_id],
                               ["portal.booking", "8"]],
        f"{api}holds": [""],
        f"{api}webhook-endpoints": [""],
        f"{api}webhook-endpoint": [[Endpoint.objects.order_by("pk")[0].pk]],
        f"{api}webhook-deliveries": ["", "?state=failed", "?state=waiting",
                                     f"?endpoint={Endpoint.objects.order_by('pk')[0].pk}"],
        f"{api}webhook-delivery": [[Delivery.objects.order_by("pk")[500].pk]],
        f"{api}schema": [""],
        f"{api}docs": [""],
    }  # fmt: skip
    return {
        name: [
            (str(ask) or "as it opens", reverse(name) + ask)
            if isinstance(ask, str)
            else (" ".join(str(part)[:14] for part in ask), reverse(name, args=ask))
            for ask in asks
        ]
        for name, asks in asked.items()
    }


# Those that only change something, and those of Django's that hold nothing of ours.
NOT_READ: Final = {
    "hand-over",
    "take",
    "timeline_scheduledtask_take",
    *(
        "task-cancel",
        "task-move",
        "task-run-now",
        "task-redrive",
        "task-step-happened",
        "task-forget-step",
        "task-go-on",
    ),
    *(
        "task-approve",
        "task-reject",
        "bulk",
        "bulk-stop",
        "dead-letters-redrive",
        "entity-preview",
        "events",
        "hold-release",
    ),
    *("webhook-endpoint-disable", "webhook-endpoint-enable", "webhook-endpoint-rotate", "webhook-endpoint-test"),
    *("webhook-endpoint-replay", "nothing-here"),
    *("timeline_webhooks_delivery_add", "timeline_webhooks_delivery_delete"),
}


def routes() -> set[str]:
    """Names of all routes of the admin and the API, as the site has them."""
    from django.urls import get_resolver

    def walk(resolver: Any, space: str) -> Iterator[str]:
        for pattern in resolver.url_patterns:
            if hasattr(pattern, "url_patterns"):
                yield from walk(pattern, pattern.namespace or space)
            elif pattern.name and (space == "timeline_api" or pattern.name.startswith("timeline_")):
                yield f"{space}:{pattern.name}"

    return {name for name in walk(get_resolver(), "") if name.startswith(("admin:", "timeline_api:"))}


def unknown_routes(found: Collection[str]) -> set[str]:
    """Names of routes that are read, and that nobody has said how to open."""
    return {name for name in routes() if name.rpartition(":")[2] not in NOT_READ} - set(found)
