"""What became of bookings: how each ended, how long they rested where, and whether what is written of them adds up."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby, pairwise
from statistics import median_low
from typing import Any

from rich.table import Table

from project.portal.models import Booking as Row
from project.portal.states import RESTS, S
from project.portal.timelines import Booking
from timeline import BACK, IGNORE, STAY
from timeline.exceptions import MoveNotAllowed, UnknownMachineEvent
from timeline.models import RunEntry, ScheduledTask, TimelineRun


@dataclass
class Fates:
    """
    What is known of all bookings.

    Args:
        ended: State → how many ended there.
        open: State → how many are there still.
        rested: State → how long each rest there was.
        moves: How often they have moved, in all.
        wrong: What does not add up, in words; there should be nothing.
    """

    ended: Counter[str] = field(default_factory=Counter)
    open: Counter[str] = field(default_factory=Counter)
    rested: dict[str, list[timedelta]] = field(default_factory=lambda: defaultdict(list))
    moves: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many bookings there are."""
        return self.ended.total() + self.open.total()


def fates() -> Fates:
    """
    Look at all bookings. Each run is compared with its entries, replayed; each move with the table; and each that rests has
    to have something that is to come: a timer, or a task. Three statements, whatever their number.
    """
    found = Fates()
    runs = {run.pk: run for run in TimelineRun.objects.filter(timeline="booking")}
    ahead = set(ScheduledTask.objects.open().filter(run__timeline="booking").values_list("run_id", flat=True))
    entries = RunEntry.objects.filter(run__timeline="booking").order_by("run_id", "seq").iterator(chunk_size=2000)
    for pk, told in groupby(entries, key=lambda entry: entry.run_id):
        _follow(found, runs.pop(pk), list(told), has_ahead=pk in ahead)
    states = dict(TimelineRun.objects.filter(timeline="booking").values_list("entity_id", "state"))
    for booking_id, shown in Row.objects.values_list("pk", "state"):
        if shown != states.get(str(booking_id)):
            found.wrong.append(f"{booking_id} shows {shown}, and is {states.get(str(booking_id))}")
    found.wrong += [f"{run.entity_id} has no entry" for run in runs.values()]
    return found


def _follow(found: Fates, run: TimelineRun, told: list[RunEntry], *, has_ahead: bool) -> None:
    last = told[-1]
    found.moves += len(told) - 1
    (found.open if run.is_open else found.ended)[run.state] += 1
    for entry, after in pairwise(told):
        if entry.to_state in RESTS:
            found.rested[entry.to_state].append(after.at - entry.at)
    if [entry.seq for entry in told] != list(range(len(told))) or (last.to_state, last.at, last.back, last.seq) != (
        run.state,
        run.state_at,
        run.back,
        run.moves,
    ):
        found.wrong.append(f"{run.entity_id}: its entries lead to {last.to_state}, it is {run.state}")
    found.wrong += [f"{run.entity_id}: {problem}" for problem in strange_moves(told)]
    if run.is_open and not has_ahead:
        found.wrong.append(f"{run.entity_id} is {run.state}, and nothing is to come")


def strange_moves(told: list[RunEntry]) -> Iterator[str]:
    """Name the moves that the table does not have."""
    for before, entry in pairwise(told):
        try:
            target = Booking.next(before.to_state, entry.event)
        except (MoveNotAllowed, UnknownMachineEvent):
            target = IGNORE  # Which moves nothing, either.
        answers = {BACK: before.back, STAY: before.to_state, IGNORE: ""}
        leads_to = target if isinstance(target, str) else answers[target]
        if (entry.from_state, entry.to_state) != (before.to_state, leads_to):
            yield f"{before.to_state} became {entry.to_state} by {entry.event}"


def table_of_ends(found: Fates) -> Table:
    """How each ended."""
    table = Table(title="How the bookings ended", title_justify="left")
    table.add_column("state", no_wrap=True)
    table.add_column("bookings", justify="right")
    for state in S:
        if found.ended[state]:
            table.add_row(state, f"{found.ended[state]:,}")
        if found.open[state]:
            table.add_row(f"{state} (still)", f"{found.open[state]:,}")
    table.add_section()
    table.add_row("all", f"{found.count:,}")
    return table


def table_of_rests(found: Fates) -> Table:
    """How long they rested where."""
    table = Table(title="How long they rested where", title_justify="left")
    table.add_column("state", no_wrap=True)
    for heading in ("rests", "p50", "max"):
        table.add_column(heading, justify="right", no_wrap=True)
    for state in S:
        if lengths := found.rested.get(state):
            table.add_row(state, f"{len(lengths):,}", in_short(median_low(lengths)), in_short(max(lengths)))
    return table


def in_short(length: timedelta) -> str:
    """A length of time in two units at most."""
    seconds = round(length.total_seconds())
    units = [("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)]
    parts = []
    for unit, long in units:
        if seconds >= long:
            parts.append(f"{seconds // long} {unit}")
            seconds %= long
    return " ".join(parts[:2]) or "0 s"


def told_by(portal: dict[str, Any], booked: set[str]) -> list[str]:
    """
    Compare with what the portal has booked.

    Args:
        portal: Its books.
        booked: References of bookings that are ``BOOKED``.

    Returns:
        What differs, in words.
    """
    theirs = set(portal["booked"])
    wrong = [f"{reference} is BOOKED, and the portal knows nothing" for reference in sorted(booked - theirs)]
    wrong += [f"The portal has {reference}, which is not BOOKED" for reference in sorted(theirs - booked)]
    return wrong + ([f"{portal['booked_twice']} were booked twice"] if portal["booked_twice"] else [])
