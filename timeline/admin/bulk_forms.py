"""How a form of a page begins a bulk action: once, however often the form is sent."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from timeline.admin.naming import actor_of
from timeline.clocks import story_now
from timeline.dispatch.acting_in_bulk import begin_bulk
from timeline.ids import uuid7
from timeline.models import BulkAction

if TYPE_CHECKING:
    from timeline.admin.pages import Pages
    from timeline.admin.portions import Place
    from timeline.policy import Action


def bulk_id_of(request: HttpRequest) -> UUID:
    """The id of the bulk action that a form begins, as the form was made with it; a new one, where it says none."""
    with suppress(ValueError):
        return UUID(request.POST.get("bulk", ""))
    return uuid7()


def begin_from(page: Pages, request: HttpRequest, action: Action, place: Place, **columns: Any) -> HttpResponse:
    """
    Begin a bulk action, and lead to its page.

    Args:
        page: The page of the form.
        request: With the form.
        action: What is to be done.
        place: When the tasks were counted.
        columns: Of the bulk action: which tasks are meant, and what was answered.
    """
    bulk = BulkAction(
        pk=bulk_id_of(request),
        action=action.value,
        asker=str(request.user.pk),
        actor=actor_of(request.user),
        created_at=min(place.before, story_now(page.alias)),
        **columns,
    )
    with suppress(IntegrityError):
        begin_bulk(bulk, page.visible(request), using=page.alias)
    return HttpResponseRedirect(page.address("bulk_action", bulk.pk))
