"""Sweep: find and mend what no signal saw, a limited part at a time. Several processes may do so at once."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from random import sample
from typing import Any, Final

from django.db import DatabaseError

from timeline.clocks import MachineTime
from timeline.conf import Settings, get_settings
from timeline.features.plans.drift import OpenRuns
from timeline.features.sweep.searches import SweepPart, Swept, ended_parts, newcomers
from timeline.models import Sweep
from timeline.store.database_errors import is_usable
from timeline.store.poll_queries import polling
from timeline.store.site import confirm_site

logger = logging.getLogger("timeline")

FORGOTTEN: Final = 3  # A part that had no round for so many intervals is not known to anybody any more.


def sweep(*, size: int | None = None, now: datetime, using: str) -> Swept:
    """
    Check the next open runs, or new entities of a timeline that starts with each. Gives nothing if no round is due, or others
    work on it.

    Rounds begin ``TIMELINE["SWEEP_INTERVAL"]`` apart, and the place of each is stored. What a process took before it died is
    checked in the next round. ``size``: items at most; None: as many as each part takes.

    Raises:
        NotRunHere: if there is something to do, and nothing of this database may be run here.
    """
    interval = get_settings().SWEEP_INTERVAL
    if interval is None:
        return Swept()
    every: list[SweepPart[Any]] = [OpenRuns(), *ended_parts(), *newcomers(using)]
    parts = {part.name: part for part in every}
    resting = set(Sweep.objects.using(using).resting(interval).filter(pk__in=parts).values_list("pk", flat=True))
    due = [part for name, part in parts.items() if name not in resting]
    if due:
        confirm_site(using=using)
        _prepare(parts, interval, using)
    # In random order: if a round takes longer than the interval, its next one is due at once, and other parts need their turn.
    for part in sample(due, len(due)):
        some = _claim_if_readable(part, size, interval, using)
        if some is not None:
            return part.mend(some, now=now, using=using)
    return Swept()


def remember_newest(*, using: str) -> None:
    """
    Remember the newest entities, for timelines that start with each new entity and were never swept: their first round begins
    there. One query, if there is such a timeline; for later ones three.
    """
    interval = get_settings().SWEEP_INTERVAL
    if interval is None or not (parts := {part.name: part for part in newcomers(using)}):
        return
    unknown = parts.keys() - set(Sweep.objects.using(using).filter(pk__in=parts).values_list("pk", flat=True))
    if unknown:
        confirm_site(using=using)
        _make(unknown, using)
    for name in sorted(unknown):
        _claim_if_readable(parts[name], None, interval, using)


def begin_round(*, using: str) -> None:
    """Let a round be due at once, if none is under way."""
    longest = Settings().SWEEP_INTERVAL or timedelta(0)
    wait = max(get_settings().SWEEP_INTERVAL or longest, longest)
    over = Sweep.objects.using(using).filter(ended_at__isnull=False, begun_at__gt=MachineTime(-2 * wait))
    over.update(begun_at=MachineTime(-2 * wait))


def _prepare(names: Collection[str], interval: timedelta, using: str) -> None:
    """
    Make the rows of new parts, and delete those of parts that nobody sweeps any more: such a part starts anew if it comes
    back. Others may know a part that this process does not: a later release, or another site.
    """
    rows = Sweep.objects.using(using)
    rows.exclude(pk__in=names).filter(begun_at__lt=MachineTime(-FORGOTTEN * interval)).delete()
    known = set(rows.values_list("pk", flat=True))
    _make([name for name in names if name not in known], using)


def _make(names: Iterable[str], using: str) -> None:
    made = [Sweep(timeline=name, begun_at=MachineTime()) for name in names]
    Sweep.objects.using(using).bulk_create(made, ignore_conflicts=True)


def _claim_if_readable(part: SweepPart[Any], size: int | None, interval: timedelta, using: str) -> Sequence[Any] | None:
    """Take the next items as ``_claim`` does. If the database refuses to read a table, other parts have their turn."""
    try:
        return _claim(part, size, interval, using)
    except DatabaseError as error:
        if not is_usable(using):
            raise
        logger.warning("The sweep cannot read %s now: %s", part.name or "the open runs", error)
        rows = Sweep.objects.using(using).filter(pk=part.name, ended_at__isnull=False)
        rows.update(begun_at=MachineTime())  # It is left out until its next round.
        return None


def _claim(part: SweepPart[Any], size: int | None, interval: timedelta, using: str) -> Sequence[Any] | None:
    """
    Take the next items, and store the new place in a short transaction, so that no other process takes them. None: the part is
    not due any more, or another process works on it.
    """
    with polling(using):
        rows = Sweep.objects.using(using).filter(pk=part.name)
        row = rows.select_for_update(skip_locked=True).first()
        if row is None or rows.resting(interval).exists():
            return None
        begun = {"begun_at": MachineTime()} if row.ended_at is not None else {}
        taken = part.take(row.position, begins=bool(begun) or not row.position, size=size or part.most, using=using)
        rows.update(position=taken.position, ended_at=MachineTime() if taken.is_last else None, **begun)
        return taken.some
