"""The pages of bulk actions: all there are, and one with how far it is and a way to stop it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext, pgettext_lazy

from timeline.admin.actions import WORDINGS
from timeline.admin.pages import FeaturePage, FeaturePages, policy_of
from timeline.admin.portions import Place
from timeline.admin.references import actor_of
from timeline.clocks import story_now
from timeline.features.bulk_actions.poll import (
    ACTIONS,
    CARRIED_ON,
    CHANGED,
    FORBIDDEN,
    REFUSED,
    RUN_ENDED,
    begin_bulk,
    stop_bulk,
)
from timeline.ids import uuid7
from timeline.lifecycle import FINAL, OPEN, ReasonCode, State
from timeline.models import BulkAction, BulkState
from timeline.models.bulk_action import BulkActionQuerySet
from timeline.policy import Action
from timeline.registry import registry
from timeline.timing.offsets import Offset

if TYPE_CHECKING:
    from timeline.admin.pages import Pages
    from timeline.policy import Action


MOST: Final = 50  # Bulk actions on the page, the last first.
STATES: Final = {
    BulkState.RUNNING: pgettext_lazy("timeline", "running"),
    BulkState.DONE: pgettext_lazy("timeline", "done"),
    BulkState.STOPPED: pgettext_lazy("timeline", "stopped"),
}
WHY: Final = {
    CHANGED: gettext_lazy("they had changed by then"),
    CARRIED_ON: gettext_lazy("a later revision carries on for them"),
    RUN_ENDED: gettext_lazy("their run ended by an exit"),
    FORBIDDEN: gettext_lazy("who asked may not do this with them"),
    REFUSED: gettext_lazy("for another reason"),
}


class Said(NamedTuple):
    """A part of what somebody asked for."""

    name: str
    value: str


class ShownAction(NamedTuple):
    """A bulk action as it is shown. No ``chips``: all tasks are meant; ``left``: why tasks stay as they are, and how many."""

    bulk: BulkAction
    asks: str
    state: str
    chips: list[Said]
    left: list[tuple[str, int]]
    url: str


class BulkPages(FeaturePages):
    """Who sees a bulk action by the policy finds it here, whoever began it, by the API or in the admin."""

    def bulk_view(self, request: HttpRequest) -> HttpResponse:
        """List them, the last first."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        found = self._visible_bulk(request).order_by("-pk")[:MOST]
        context = {"shown": [self._shown(bulk) for bulk in found]}
        return self.page(request, "bulk", pgettext("timeline", "Bulk actions"), self.now_of(request), context)

    def beside_list(self, request: HttpRequest) -> Iterable[tuple[str, str]]:
        """The page, for who may find something there."""
        if _may_see_bulk(request):
            yield pgettext("timeline", "Bulk actions"), self.address("bulk")

    def bulk_action_view(self, request: HttpRequest, object_id: UUID) -> HttpResponse:
        """Show how far one is; or stop it."""
        bulk = self._visible_bulk(request).filter(pk=object_id).first()
        if bulk is None:
            raise Http404(_("There is no such bulk action."))
        may_stop = policy_of(request).allows(request.user, Action(bulk.action))
        if request.method == "POST":
            if not may_stop:
                raise PermissionDenied
            return self._stop(request, bulk)
        shown = self._shown(bulk)
        context = {
            "shown": shown,
            "may_stop": may_stop and bulk.state == BulkState.RUNNING,
            "span": _span(bulk),
            "spread": int(bulk.spread.total_seconds() // 60) if bulk.spread else 0,
        }
        return self.page(request, "bulk_action", shown.asks, self.now_of(request), context)

    def _visible_bulk(self, request: HttpRequest) -> BulkActionQuerySet:
        return policy_of(request).visible_bulk_actions(BulkAction.objects.using(self.alias), request.user)

    def _stop(self, request: HttpRequest, bulk: BulkAction) -> HttpResponse:
        actor = actor_of(request.user)
        stopped = stop_bulk(bulk.pk, actor=actor, now=story_now(self.alias), using=self.alias)
        if stopped.state == BulkState.STOPPED:
            messages.success(request, _("It is stopped. What is done stays."))
        else:
            messages.warning(request, _("It had ended before you stopped it."))
        return HttpResponseRedirect(self.address("bulk_action", bulk.pk))

    def _shown(self, bulk: BulkAction) -> ShownAction:
        asks = WORDINGS[Action(bulk.action)].asks % {"count": bulk.matched}
        left = [(str(said), bulk.skipped[why]) for why, said in WHY.items() if bulk.skipped.get(why)]
        where = self.address("bulk_action", bulk.pk)
        return ShownAction(bulk, asks, str(STATES[bulk.state]), in_words(bulk.filters), left, where)

    ROUTES = (
        FeaturePage("bulk", "bulk/", bulk_view, is_live=True),
        FeaturePage("bulk_action", "bulk/<uuid:object_id>/", bulk_action_view, is_live=True, takes_forms=True),
    )


PAGES = (BulkPages,)


def _span(bulk: BulkAction) -> str:
    """By how much each moves from its own time: days and hours, each with its sign."""
    parts = (
        (bulk.by_days, Offset(days=bulk.by_days)),
        (bulk.by_seconds, Offset(exact=timedelta(seconds=bulk.by_seconds))),
    )
    return " ".join(f"{'+' if amount > 0 else '−'} {part.describe()}" for amount, part in parts if amount)


def _may_see_bulk(request: HttpRequest) -> bool:
    """Whether the user may see all, or do any of it, so that there may be something of theirs."""
    policy = policy_of(request)
    may_act = any(policy.allows(request.user, action) for action in ACTIONS)
    return may_act or request.user.has_perm("timeline.view_scheduledtask")


def in_words(filters: Mapping[str, Any]) -> list[Said]:
    """Say which tasks are meant."""
    said = (
        Said(pgettext("timeline", "State"), _states(filters.get("state") or ())),
        Said(pgettext("timeline", "Timeline"), filters.get("timeline", "")),
        Said(pgettext("timeline", "Task"), registry.titled(filters.get("task", ""))),
        Said(pgettext("timeline", "Kind"), filters.get("kind", "")),
        Said(pgettext("timeline", "Reason"), _reason(filters.get("reason"))),
        Said(pgettext("timeline", "Search"), filters.get("q", "")),
        Said(pgettext("timeline", "Failed alike"), filters.get("group", "") or ", ".join(filters.get("groups", ()))),
        Said(pgettext("timeline", "Due from"), _moment(filters.get("due_after"))),
        Said(pgettext("timeline", "Due before"), _moment(filters.get("due_before"))),
        Said(pgettext("timeline", "Ended after"), _moment(filters.get("ended_after"))),
        Said(pgettext("timeline", "Ended by"), _moment(filters.get("ended_until"))),
    )
    return [each for each in said if each.value]


def _states(names: Any) -> str:
    states = frozenset(State(name) for name in names)
    if states == OPEN:
        return pgettext("timeline", "open")
    if states == FINAL:
        return pgettext("timeline", "ended")
    return ", ".join(str(state.label) for state in State if state in states)


def _reason(code: str | None) -> str:
    return str(ReasonCode(code).label) if code else ""


def _moment(text: str | None) -> str:
    if not text:
        return ""
    return f"{datetime.fromisoformat(text).astimezone(timezone.get_current_timezone()):%Y-%m-%d %H:%M}"


def bulk_id_of(request: HttpRequest) -> UUID:
    """The id of the bulk action that a form begins, as the form was made with it; a new one, where it says none."""
    with suppress(ValueError):
        return UUID(request.POST.get("bulk", ""))
    return uuid7()


def begin_from(page: Pages, request: HttpRequest, action: Action, place: Place, **columns: Any) -> HttpResponse:
    """Begin a bulk action of a form, and lead to its page; ``columns`` say which tasks are meant and what was answered."""
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
