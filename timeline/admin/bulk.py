"""The pages of bulk actions: all there are, and one with how far it is and a way to stop it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext, pgettext_lazy

from timeline.admin.naming import actor_of
from timeline.admin.pages import Pages, policy_of
from timeline.admin.wording import WORDINGS
from timeline.clocks import story_now
from timeline.dispatch.acting_in_bulk import ACTIONS, CARRIED_ON, CHANGED, FORBIDDEN, REFUSED, RUN_ENDED, stop_bulk
from timeline.lifecycle import FINAL, OPEN, ReasonCode, State
from timeline.models import BulkAction, BulkState
from timeline.models.bulk_action import BulkActionQuerySet
from timeline.policy import Action
from timeline.registry import registry
from timeline.timing.offsets import Offset

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


class Shown(NamedTuple):
    """
    A bulk action as it is shown.

    Args:
        bulk: The row.
        asks: What it does, with the number of tasks.
        state: In words.
        chips: Which tasks are meant; none: all.
        left: Why tasks stay as they are, and how many.
        url: Of its page.
    """

    bulk: BulkAction
    asks: str
    state: str
    chips: list[Said]
    left: list[tuple[str, int]]
    url: str


class BulkPages(Pages):
    """Who sees a bulk action by the policy finds it here, whoever began it, by the API or in the admin."""

    def bulk_view(self, request: HttpRequest) -> HttpResponse:
        """List them, the last first."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        found = self._visible_bulk(request).order_by("-pk")[:MOST]
        context = {"shown": [self._shown(bulk) for bulk in found]}
        return self.page(request, "bulk", pgettext("timeline", "Bulk actions"), story_now(self.alias), context)

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
        return self.page(request, "bulk_action", shown.asks, story_now(self.alias), context)

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

    def _shown(self, bulk: BulkAction) -> Shown:
        asks = WORDINGS[Action(bulk.action)].asks % {"count": bulk.matched}
        left = [(str(said), bulk.skipped[why]) for why, said in WHY.items() if bulk.skipped.get(why)]
        where = self.address("bulk_action", bulk.pk)
        return Shown(bulk, asks, str(STATES[bulk.state]), in_words(bulk.filters), left, where)


def _span(bulk: BulkAction) -> str:
    """By how much each is moved from its own time, in words: days and hours, each with its sign."""
    parts = (
        (bulk.by_days, Offset(days=bulk.by_days)),
        (bulk.by_seconds, Offset(exact=timedelta(seconds=bulk.by_seconds))),
    )
    return " ".join(f"{'+' if amount > 0 else '−'} {part.describe()}" for amount, part in parts if amount)


def may_act_in_bulk(request: HttpRequest) -> bool:
    """Whether the user may do any of it, so that there may be something of theirs."""
    policy = policy_of(request)
    return any(policy.allows(request.user, action) for action in ACTIONS)


def in_words(filters: Mapping[str, Any]) -> list[Said]:
    """Say which tasks are meant."""
    said = (
        Said(pgettext("timeline", "State"), _states(filters.get("state") or ())),
        Said(pgettext("timeline", "Timeline"), filters.get("timeline", "")),
        Said(pgettext("timeline", "Task"), registry.titled(filters.get("task", ""))),
        Said(pgettext("timeline", "Kind"), filters.get("kind", "")),
        Said(pgettext("timeline", "Reason"), _reason(filters.get("reason"))),
        Said(pgettext("timeline", "Search"), filters.get("q", "")),
        Said(pgettext("timeline", "Failed alike"), _group(filters.get("group", ""))),
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


def _group(group: str) -> str:
    """A fingerprint; of those that failed before there were any, what their task is called."""
    return registry.titled(group) if "." in group else group


def _reason(code: str | None) -> str:
    return str(ReasonCode(code).label) if code else ""


def _moment(text: str | None) -> str:
    if not text:
        return ""
    return f"{datetime.fromisoformat(text).astimezone(timezone.get_default_timezone()):%Y-%m-%d %H:%M}"
