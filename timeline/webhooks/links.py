"""From a delivery to what it tells of, and back: which deliveries tell of a task or a move."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final, NamedTuple

from django.db import router
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from timeline.admin.beside import Beside, BesideLink
from timeline.admin.pages import Pages, policy_of
from timeline.admin.references import Named, called, named
from timeline.admin.subject import look_at, may_look
from timeline.models import RunEntry, ScheduledTask
from timeline.webhooks.models import Delivery, Endpoint
from timeline.webhooks.told import told_state

if TYPE_CHECKING:
    from uuid import UUID

    from django.contrib.admin import AdminSite
    from django.db.models import QuerySet
    from django.http import HttpRequest

MOST: Final = 20  # Deliveries that a page links.


def pages_of(site: AdminSite) -> Pages | None:
    """The pages of tasks on a site; None: it has none."""
    pages = site._registry.get(ScheduledTask)
    return pages if isinstance(pages, Pages) else None


def telling_of(sources: Collection[UUID], *, using: str) -> QuerySet[Delivery]:
    """Deliveries that tell of these; by endpoint, as the index is of endpoint and source."""
    endpoints = Endpoint.objects.using(using).values("pk")
    return Delivery.objects.using(using).filter(endpoint__in=endpoints, source__in=sources)


def beside(request: HttpRequest, shown: Collection[UUID], *, site: str, using: str) -> Beside | None:
    """Say below a page to whom what it shows was told, to who may see deliveries; one statement."""
    if not request.user.has_perm("timeline_webhooks.view_delivery") or router.db_for_read(Delivery) != using:
        return None
    found = list(telling_of(shown, using=using).select_related("endpoint").order_by("-pk")[: MOST + 1])
    if not found:
        return None
    count = len({each.endpoint_id for each in found})
    title = ngettext("Told to %(count)s endpoint", "Told to %(count)s endpoints", count)
    cut = _("Only the latest %(most)s deliveries are shown.") % {"most": MOST} if len(found) > MOST else ""
    links = [link_to(each, site=site) for each in found[:MOST]]
    return Beside(title % {"count": number_format(count)}, links, cut)


def link_to(delivery: Delivery, *, site: str) -> BesideLink:
    """Name a delivery by its endpoint: what it tells, when it was written, and how it stands."""
    where = reverse(f"{site}:timeline_webhooks_delivery_change", args=[delivery.pk])
    at = f"{localtime(delivery.created_at):%Y-%m-%d %H:%M}"
    return BesideLink(str(delivery.endpoint), where, f"{delivery.topic} · {at} · {told_state(delivery)}")


class Origin(NamedTuple):
    """What a delivery tells of. Addresses are empty where who looks may not open them, or there is nothing any more."""

    entity: str
    entity_url: str
    task: str = ""
    task_url: str = ""
    event: str = ""


def origin_of(delivery: Delivery, request: HttpRequest, site: AdminSite, *, using: str) -> Origin:
    """Find what a delivery tells of, as far as the user may see it: an entity with its name, and the task or the event."""
    pages = pages_of(site)
    there = _entity(delivery, request, pages, site.name)
    origin = Origin(there.name, there.where)
    if delivery.topic.startswith("task."):
        task = None if pages is None else pages.visible(request).filter(pk=delivery.source).values("task_key").first()
        if pages is None or task is None:
            return origin
        return origin._replace(task=called(task["task_key"]).words, task_url=pages.address("change", delivery.source))
    moves = RunEntry.objects.using(using).filter(pk=delivery.source).values_list("event", "to_state")
    return origin._replace(event=next((event or state for event, state in moves), ""))


def _entity(delivery: Delivery, request: HttpRequest, pages: Pages | None, site: str) -> Named:
    ref = delivery.entity_ref
    plain = Named(f"{ref.label}:{ref.id}" if ref.label else pgettext("timeline", "The system"), "", "")
    if pages is None:
        return plain
    about = look_at(ref, using=pages.alias)
    if not may_look(about, pages.visible(request), policy_of(request), request.user):
        return plain
    return named(ref, about.entity, site)
