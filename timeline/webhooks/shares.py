"""How many deliveries arrive: of each endpoint in words, and over a day and a week as a chart. All of it is bounded."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from django.db import connections
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from timeline.admin.health import HEIGHT, PlotBar, PlotTick
from timeline.dialects import dialect_of
from timeline.webhooks.facts import PACKAGE
from timeline.webhooks.models import Delivery, Endpoint, State

if TYPE_CHECKING:
    from datetime import tzinfo

A_DAY: Final = timedelta(hours=24)
MOST_IN_LIST: Final = 1_000  # Deliveries counted of each endpoint in the list,
MOST: Final = 10_000  # and on its own page.
DAY, WEEK = (24, 1), (168, 6)  # Hours that a chart shows, and hours of each bar.
_TICKS: Final = 6


class Share(NamedTuple):
    """How many deliveries of a time stand so; ``most``: only so many of them, the latest, were counted; 0: all."""

    states: Mapping[str, int]
    most: int = 0

    @property
    def all(self) -> int:
        """How many there are, but for what was cancelled: nobody meant that to arrive."""
        return sum(self.states.values()) - self.states.get(State.CANCELLED, 0)

    def words(self, time: str) -> str:
        """The share in words, of a time such as “24 h”."""
        said = {
            "good": number_format(self.states.get(State.DELIVERED, 0), force_grouping=True),
            "all": number_format(self.all, force_grouping=True),
            "time": time,
        }
        if self.most:
            said["most"] = number_format(self.most, force_grouping=True)
            return _("%(good)s of %(all)s delivered, of the latest %(most)s in %(time)s") % said
        if not self.all:
            return _("nothing sent in %(time)s") % said
        return _("%(good)s of %(all)s delivered in %(time)s") % said

    @property
    def rest(self) -> list[str]:
        """What became of the others, in words."""
        named = (
            (State.FAILED, _("%(count)s failed for good")),
            (State.WAITING, _("%(count)s not delivered yet")),
            (State.CANCELLED, _("%(count)s cancelled")),
        )
        found = ((said, self.states.get(state, 0)) for state, said in named)
        return [said % {"count": number_format(count, force_grouping=True)} for said, count in found if count]


def shares_of(endpoints: Iterable[UUID], *, now: datetime, using: str) -> dict[UUID, Share]:
    """How the deliveries of each endpoint stand that were written in the last 24 hours. One statement, of few rows each."""
    keys = list(endpoints)
    if not keys:
        return {}
    connection, column = connections[using], Endpoint._meta.pk
    since = connection.ops.adapt_datetimefield_value(now - A_DAY)
    parameters: list[Any] = []
    for key in keys:
        parameters += [column.get_db_prep_value(key, connection), since, MOST_IN_LIST]
    found: defaultdict[UUID, dict[str, int]] = defaultdict(dict)
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join([dialect_of(using).sql("shares", package=PACKAGE)] * len(keys)), parameters)
        for key, state, count in cursor.fetchall():
            found[key if isinstance(key, UUID) else UUID(key)][state] = count
    return {key: Share(found[key], MOST_IN_LIST if sum(found[key].values()) >= MOST_IN_LIST else 0) for key in keys}


class ChartRow(NamedTuple):
    """A span of time of the table that says the same as a chart."""

    at: str
    good: int
    bad: int


@dataclass(frozen=True, slots=True)
class Chart:
    """
    What was written in a time, as bars: delivered, and on top what failed for good; ``rows``: the same, without empty spans.

    Args:
        cut: Says so if not all was counted.
    """

    title: str
    words: str
    rest: Sequence[str]
    bars: Sequence[PlotBar]
    highest: str
    ticks: Sequence[PlotTick]
    rows: Sequence[ChartRow]
    cut: str


def charts_of(endpoint: Endpoint, *, now: datetime, using: str) -> list[Chart]:
    """The charts of a day and a week. One statement, of the latest ``MOST`` deliveries."""
    since = _first_of(WEEK[0], now)
    wanted = Delivery.objects.using(using).filter(endpoint=endpoint, created_at__gte=since).order_by("-created_at")
    found = list(wanted.values_list("created_at", "state")[: MOST + 1])
    counted = found[:MOST]
    oldest = counted[-1][0] if len(found) > MOST else None
    zone = timezone.get_current_timezone()
    named = ((DAY, pgettext("timeline", "Last 24 hours"), _("24 h")), (WEEK, _("Last 7 days"), _("7 days")))
    return [_chart(counted, hours, title, time, oldest, now, zone) for hours, title, time in named]


def _chart(
    found: Sequence[tuple[datetime, str]],
    span: tuple[int, int],
    title: str,
    time: str,
    oldest: datetime | None,
    now: datetime,
    zone: tzinfo,
) -> Chart:
    hours, width = span
    first, length = _first_of(hours, now), timedelta(hours=width)
    sums = [Counter[str]() for _number in range(hours // width)]
    for at, state in found:
        if at >= first:
            sums[min((at - first) // length, len(sums) - 1)][state] += 1
    share = Share(sum(sums, Counter[str]()))
    begins = [first + number * length for number in range(len(sums))]
    is_cut = oldest is not None and oldest > first
    said = {"most": number_format(MOST, force_grouping=True), "at": _told(oldest or first, zone)}
    return Chart(
        title,
        share.words(time),
        share.rest,
        _bars(sums, begins, zone),
        number_format(max((some[State.DELIVERED] + some[State.FAILED] for some in sums), default=0)),
        _ticks(begins, zone, is_a_day=width == 1),
        [
            ChartRow(_told(at, zone), some[State.DELIVERED], some[State.FAILED])
            for at, some in zip(reversed(begins), reversed(sums), strict=True)
            if some[State.DELIVERED] or some[State.FAILED]
        ],
        _("Only the latest %(most)s deliveries are counted: those since %(at)s.") % said if is_cut else "",
    )


def _bars(sums: Sequence[Counter[str]], begins: Sequence[datetime], zone: tzinfo) -> list[PlotBar]:
    width = 100 / len(sums)
    highest = max(some[State.DELIVERED] + some[State.FAILED] for some in sums) or 1
    bars = []
    for number, (at, some) in enumerate(zip(begins, sums, strict=True)):
        good, bad = (round(HEIGHT * some[state] / highest, 1) for state in (State.DELIVERED, State.FAILED))
        said = _("%(at)s: %(good)s delivered, %(bad)s failed for good") % {
            "at": _told(at, zone),
            "good": number_format(some[State.DELIVERED]),
            "bad": number_format(some[State.FAILED]),
        }
        top = round(HEIGHT - good - bad, 1)
        bars.append(
            PlotBar(round(number * width, 3), round(width * 0.8, 3), round(HEIGHT - good, 1), good, top, bad, said)
        )
    return bars


def _ticks(begins: Sequence[datetime], zone: tzinfo, *, is_a_day: bool) -> list[PlotTick]:
    form, width = "%H:%M" if is_a_day else "%m-%d", 100 / len(begins)
    return [
        PlotTick(round(number * width, 3), f"{begins[number].astimezone(zone):{form}}")
        for number in range(0, len(begins), max(len(begins) // _TICKS, 1))
    ]


def _told(at: datetime, zone: tzinfo) -> str:
    return f"{at.astimezone(zone):%m-%d %H:%M}"


def _first_of(hours: int, now: datetime) -> datetime:
    """The beginning of the first of so many hours; the last of them is the present one."""
    return now.astimezone(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=hours - 1)
