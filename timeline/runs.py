"""
The life of a run. It is open, and ends once, in one of four ways. A run that finished may be opened again for a redrive.

Only this module writes the columns of ``TimelineRun`` for this. The caller of each function has locked the entities and the
runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any

from django.db import connections

from timeline.dialects import dialect_of
from timeline.lifecycle import RunEnd
from timeline.models import EntityRef, TimelineRun
from timeline.models.among import Among
from timeline.payloads import clip

MAX_KEY = 100
MAX_TEXT = 200


def ending(how: RunEnd, text: str = "", *, now: datetime) -> dict[str, Any]:
    """
    The columns of a run that ends.

    Args:
        how: One of the four ways.
        text: For people: the name of the exit, or what somebody wrote; if nothing of it can be stored, the word for ``how``.
        now: Story time.
    """
    return {"ended_at": now, "end_code": how.value, "end_reason": clip(text, MAX_TEXT) or how.value}


def end(runs: Sequence[TimelineRun], how: RunEnd, text: str = "", *, now: datetime, using: str) -> None:
    """End open runs in one statement. The caller ends their tasks."""
    _write(runs, ending(how, text, now=now), using)


def end_open(
    timelines: Sequence[str],
    refs: Sequence[EntityRef],
    how: RunEnd,
    text: str = "",
    *,
    key: str | None = None,
    now: datetime,
    using: str,
) -> list[TimelineRun]:
    """
    End the open runs of some timelines and entities in one statement. The caller ends their tasks.

    Args:
        timelines: Names of the timelines.
        refs: The entities, all with the same label.
        how, text, now: As for ``ending``.
        key: Key of the runs; None: any key.
        using: Database alias.

    Returns:
        The runs that were ended, in order of their ids.
    """
    columns, dialect = ending(how, text, now=now), dialect_of(using)
    parameters = {
        "now": connections[using].ops.adapt_datetimefield_value(now),
        "code": columns["end_code"],
        "reason": columns["end_reason"],
        "label": refs[0].label,
        "ids": dialect.list_of(ref.id for ref in refs),
        "timelines": dialect.list_of(timelines),
        "key": key,
    }
    ended = TimelineRun.objects.using(using).raw(dialect.sql("end_open_runs"), parameters)
    return sorted(ended, key=attrgetter("pk"))


def reopen(runs: Sequence[TimelineRun], *, using: str) -> None:
    """Open finished runs again, in one statement. The caller has checked that no later run is open in their place."""
    _write(runs, {"ended_at": None, "end_code": "", "end_reason": ""}, using)


def _write(runs: Sequence[TimelineRun], columns: dict[str, Any], using: str) -> None:
    if runs:
        TimelineRun.objects.using(using).filter(Among([run.pk for run in runs])).update(**columns)
        for run in runs:
            run.__dict__.update(columns)
