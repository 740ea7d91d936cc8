"""Plots of figures by the hour: where bars and points stand. Pure geometry; a template draws it, and a table says the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from math import log10
from typing import Final, NamedTuple

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from timeline.reading.figures import AN_HOUR, Span

HEIGHT: Final = 90  # Of the part in which bars and points stand.
LEAST: Final = 0.1  # Seconds; lateness is drawn by its logarithm from there
MOST: Final = 86400.0  # to a day.
_TICKS: Final = 6


class Bar(NamedTuple):
    """A bar of a plot: in percent across, in pixels down. What failed stands on what completed."""

    x: float
    width: float
    good_y: float
    good: float
    bad_y: float
    bad: float
    title: str


class Point(NamedTuple):
    """A point of a line: in percent across, in pixels down."""

    x: float
    y: float
    title: str


class Tick(NamedTuple):
    """A time below a plot."""

    x: float
    text: str


@dataclass(frozen=True, slots=True)
class Plots:
    """
    Two plots over the same time.

    Args:
        bars: How many tasks completed, and failed.
        highest: What the highest bar stands for, for people.
        half, most: How late half of the tasks started, and nineteen in twenty.
        ticks: Times.
        rows: The same as a table: time, completed, failed, discarded, cancelled, p50, p95; what is empty is left out.
    """

    bars: Sequence[Bar]
    highest: str
    half: Sequence[Point]
    most: Sequence[Point]
    ticks: Sequence[Tick]
    rows: Sequence[tuple[str, Span, str, str]]


def plots(spans: Sequence[Span], *, zone: tzinfo) -> Plots | None:
    """Place what spans say; None: nothing happened in any."""
    if all(span.is_empty for span in spans):
        return None
    width = 100 / len(spans)
    highest = max(span.completed + span.failed + span.discarded for span in spans) or 1
    bars: list[Bar] = []
    half: list[Point] = []
    most: list[Point] = []
    for number, span in enumerate(spans):
        at, x = _at(span.begins, zone), round(number * width, 3)
        good, bad = HEIGHT * span.completed / highest, HEIGHT * (span.failed + span.discarded) / highest
        said = _("%(at)s: %(completed)s completed, %(failed)s failed, %(discarded)s discarded") % {
            "at": at,
            "completed": number_format(span.completed),
            "failed": number_format(span.failed),
            "discarded": number_format(span.discarded),
        }
        bars.append(
            Bar(x, round(width * 0.8, 3), _px(HEIGHT - good), _px(good), _px(HEIGHT - good - bad), _px(bad), said)
        )
        for line, seconds in ((half, span.late_p50), (most, span.late_p95)):
            if seconds is not None:
                line.append(Point(round(x + width * 0.4, 3), _height_of(seconds), f"{at}: {in_short(seconds)}"))
    every = max(len(spans) // _TICKS, 1)
    is_a_day = len(spans) < 2 or spans[1].begins - spans[0].begins <= AN_HOUR
    ticks = [
        Tick(round(number * width, 3), f"{spans[number].begins.astimezone(zone):{'%H:%M' if is_a_day else '%m-%d'}}")
        for number in range(0, len(spans), every)
    ]
    rows = [
        (_at(span.begins, zone), span, in_short(span.late_p50), in_short(span.late_p95))
        for span in reversed(spans)
        if not span.is_empty
    ]
    return Plots(bars, number_format(highest), half, most, ticks, rows)


def in_short(seconds: float | None) -> str:
    """A length of time in few letters; an estimate needs no more."""
    if seconds is None:
        return "–"
    if seconds < 10:
        return _("%(number)s s") % {"number": number_format(round(seconds, 1))}
    if seconds < 120:
        return _("%(number)s s") % {"number": round(seconds)}
    if seconds < 7200:
        return _("%(number)s min") % {"number": round(seconds / 60)}
    hours = round(seconds / 3600)
    return ngettext("%(count)d hour", "%(count)d hours", hours) % {"count": hours}


def _at(moment: datetime, zone: tzinfo) -> str:
    return f"{moment.astimezone(zone):%m-%d %H:%M}"


def _px(length: float) -> float:
    return round(length, 1)


def _height_of(seconds: float) -> float:
    share = log10(min(max(seconds, LEAST), MOST) / LEAST) / log10(MOST / LEAST)
    return _px(HEIGHT * (1 - share))
