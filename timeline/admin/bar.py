"""The bar on top of each page: where to go, and how much waits there. Its counts are read in a statement of the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from django.apps import apps
from django.urls import NoReverseMatch, reverse
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from timeline.clocks import MachineTime, is_told, story_now
from timeline.models import Hold
from timeline.policy import TimelinePolicy
from timeline.reading.attention import Ask, Waiting, asks_of_waiting, counting, read_counts

if TYPE_CHECKING:
    from django.http import HttpRequest

    from timeline.models.task import ScheduledTaskQuerySet
    from timeline.store.multi_query import Words


MOST: Final = 1_000  # Of each kind are counted on each page.

_COUNTS: Final = "_timeline_counts"


class BarEntry(NamedTuple):
    """One place of the bar; ``number`` is empty where nothing waits, ``said`` says what it counts."""

    title: str
    url: str
    number: str = ""
    said: str = ""
    is_here: bool = False


def sees_holds(request: HttpRequest, policy: TimelinePolicy) -> bool:
    """Whether the user may open the page of holds."""
    return request.user.has_perm("timeline.view_hold") or policy.may_hold(request.user)


def sees_endpoints(request: HttpRequest) -> bool:
    """Whether the user may open the list of endpoints."""
    return apps.is_installed("timeline.webhooks") and request.user.has_perm("timeline_webhooks.view_endpoint")


def sees_all_runs(policy: TimelinePolicy) -> bool:
    """Whether they see all runs: a policy of the host's that shows some of them is asked of each."""
    return type(policy).sees_timeline is TimelinePolicy.sees_timeline


def asked_of(request: HttpRequest, policy: TimelinePolicy, visible: ScheduledTaskQuerySet) -> list[Ask]:
    """What is counted for a user: nothing, unless they may see all tasks."""
    if not request.user.has_perm("timeline.view_scheduledtask"):
        return []
    holds, now = sees_holds(request, policy), story_now(visible.db) if is_told() else MachineTime(once=True)
    asks = asks_of_waiting(visible, runs=sees_all_runs(policy), holds=holds, others=sees_endpoints(request), now=now)
    return [*asks, Ask("open_holds", Hold.objects.using(visible.db).open().oldest_first())] if holds else asks


def counts_asked(request: HttpRequest, policy: TimelinePolicy, visible: ScheduledTaskQuerySet) -> list[Words]:
    """The counts as a part of a statement, if there are any."""
    if "part" in request.GET:  # Of an open page only what is below the bar is asked for anew.
        return []
    asked = counting(asked_of(request, policy, visible), most=MOST, using=visible.db)
    return [] if asked is None else [asked]


def keep_counts(request: HttpRequest, found: Sequence[str] = ()) -> None:
    """Keep what the statement has found."""
    request.__dict__[_COUNTS] = read_counts(found, most=MOST)


def counts_kept(request: HttpRequest) -> dict[str, int] | None:
    """Name → how many, up to ``MOST``; None: nobody has asked yet."""
    known: dict[str, int] | None = request.__dict__.get(_COUNTS)
    return known


def told(number: int) -> str:
    """A count in few letters; empty: none."""
    return (f"{number_format(number)}+" if number >= MOST else number_format(number)) if number else ""


def bar_of(
    request: HttpRequest,
    policy: TimelinePolicy,
    page: str,
    address: Callable[[str], str],
    counts: Mapping[str, int],
    *,
    site: str,
) -> list[BarEntry]:
    """What a user may open, in the order of a day's work; ``page`` is the one that is shown."""
    sees_all = request.user.has_perm("timeline.view_scheduledtask")

    def entry(name: str, title: str, number: int = 0, said: str = "", *, also: tuple[str, ...] = ()) -> BarEntry:
        return BarEntry(title, address(name), told(number), said, page in (name, *also))

    bar = []
    if sees_all:
        waits = Waiting.of(counts).total
        bar.append(
            entry("attention", pgettext("timeline", "Needs attention"), waits, _("so many things wait for a person"))
        )
    bar.append(entry("changelist", pgettext("timeline", "Upcoming"), also=("upcoming",)))
    bar.append(entry("find", pgettext("timeline", "Find")))
    failed = counts.get("dead_letters", 0)
    bar.append(entry("dead", pgettext("timeline", "Dead letters"), failed, _("so many tasks failed for good")))
    if sees_all:
        people = counts.get("people", 0)
        bar.append(entry("people", pgettext("timeline", "People"), people, _("so many wait for a person")))
        bar.append(entry("inventory", pgettext("timeline", "Timelines"), also=("timeline", "plan")))
    if sees_holds(request, policy):
        holds = counts.get("open_holds", 0)
        bar.append(entry("holds", pgettext("timeline", "Holds"), holds, _("so many are in force"), also=("hold",)))
    if sees_endpoints(request) and (where := endpoints_at(site)):
        failing = counts.get("endpoints", 0)
        bar.append(BarEntry(pgettext("timeline", "Webhooks"), where, told(failing), _("so many endpoints fail")))
    if sees_all:
        bar.append(entry("health", pgettext("timeline", "Health")))
    return bar


def endpoints_at(site: str) -> str:
    """Address of the list of endpoints; empty: this site has none."""
    try:
        return reverse(f"{site}:timeline_webhooks_endpoint_changelist")
    except NoReverseMatch:
        return ""
