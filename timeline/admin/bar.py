"""The bar on top of each page: where to go, and how much waits there. Its counts are read in a statement of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from django.apps import apps
from django.urls import NoReverseMatch, reverse
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from timeline.clocks import MachineTime, is_told, story_now
from timeline.policy import TimelinePolicy
from timeline.reading.attention import Waiting, asks_of_waiting, counting, read_counts

if TYPE_CHECKING:
    from django.http import HttpRequest

    from timeline.models.task import ScheduledTaskQuerySet
    from timeline.reading.attention import Ask
    from timeline.store.multi_query import Words


MOST: Final = 1_000  # Of each kind are counted on each page.

_COUNTS: Final = "_timeline_counts"
# A feature takes a number between those of its neighbours.
_ORDER: Final = {
    "attention": 10,
    "changelist": 20,
    "find": 30,
    "dead": 40,
    "inventory": 60,
    "endpoints": 80,
    "health": 90,
}


class BarEntry(NamedTuple):
    """One place of the bar; ``number`` is empty where nothing waits, ``said`` says what it counts."""

    title: str
    url: str
    number: str = ""
    said: str = ""
    is_here: bool = False


class BarPlace(NamedTuple):
    """
    A place that a feature has in the bar.

    Args:
        order: Where: see ``_ORDER``.
        page: To which page it leads.
        number, said: How much waits there, and what that is.
        also: Other pages on which it is the present one.
    """

    order: int
    page: str
    title: str
    number: int = 0
    said: str = ""
    also: tuple[str, ...] = ()


def sees_endpoints(request: HttpRequest) -> bool:
    """Whether the user may open the list of endpoints."""
    return apps.is_installed("timeline.webhooks") and request.user.has_perm("timeline_webhooks.view_endpoint")


def sees_all_runs(policy: TimelinePolicy) -> bool:
    """Whether they see all runs: a policy of the host's that shows some of them is asked of each."""
    return type(policy).sees_timeline is TimelinePolicy.sees_timeline


def counts_asked(
    request: HttpRequest, policy: TimelinePolicy, visible: ScheduledTaskQuerySet, of_features: Iterable[Ask]
) -> list[Words]:
    """
    The counts as a part of a statement, if there are any: none, unless the user may see all tasks; nor for what is below the
    bar of an open page, which is asked for anew by itself.
    """
    if "part" in request.GET or not request.user.has_perm("timeline.view_scheduledtask"):
        return []
    now = story_now(visible.db) if is_told() else MachineTime(once=True)
    asks = asks_of_waiting(
        visible,
        runs=sees_all_runs(policy),
        holds=policy.sees_holds(request.user),
        others=sees_endpoints(request),
        now=now,
    )
    asked = counting([*asks, *of_features], most=MOST, using=visible.db)
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
    page: str,
    address: Callable[[str], str],
    counts: Mapping[str, int],
    of_features: Iterable[BarPlace],
    *,
    site: str,
) -> list[BarEntry]:
    """What a user may open, in the order of a day's work; ``page`` is the one that is shown."""
    places = [*of_features, *_places(counts, sees_all=request.user.has_perm("timeline.view_scheduledtask"))]
    bar = {
        place.order: BarEntry(
            place.title, address(place.page), told(place.number), place.said, page in (place.page, *place.also)
        )
        for place in places
    }
    if sees_endpoints(request) and (where := endpoints_at(site)):
        failing = told(counts.get("endpoints", 0))
        bar[_ORDER["endpoints"]] = BarEntry(
            pgettext("timeline", "Webhooks"), where, failing, _("so many endpoints fail"), page == "endpoints"
        )
    return [bar[order] for order in sorted(bar)]


def _places(counts: Mapping[str, int], *, sees_all: bool) -> Iterator[BarPlace]:
    """Those of the product itself."""
    if sees_all:
        number = Waiting.of(counts).total
        name, said = pgettext("timeline", "Needs attention"), _("so many things wait for a person")
        yield BarPlace(_ORDER["attention"], "attention", name, number, said)
        yield BarPlace(_ORDER["inventory"], "inventory", pgettext("timeline", "Timelines"), also=("timeline", "plan"))
        yield BarPlace(_ORDER["health"], "health", pgettext("timeline", "Health"))
    yield BarPlace(_ORDER["changelist"], "changelist", pgettext("timeline", "Upcoming"), also=("upcoming",))
    yield BarPlace(_ORDER["find"], "find", pgettext("timeline", "Find"))
    failed, said = counts.get("dead_letters", 0), _("so many tasks failed for good")
    yield BarPlace(_ORDER["dead"], "dead", pgettext("timeline", "Dead letters"), failed, said)


def endpoints_at(site: str) -> str:
    """Address of the list of endpoints; empty: this site has none."""
    try:
        return reverse(f"{site}:timeline_webhooks_endpoint_changelist")
    except NoReverseMatch:
        return ""
