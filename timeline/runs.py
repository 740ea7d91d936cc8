"""The life of a run, whose columns only this module writes: open, ended once, perhaps open again. Callers hold the locks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any

from django.db import connections

from timeline.dialects import Among, dialect_of
from timeline.lifecycle import RunEnd
from timeline.models import EntityRef, TimelineRun
from timeline.payloads import clip

MAX_KEY = 100
MAX_TEXT = 200


def ending(how: RunEnd, text: str = "", *, now: datetime) -> dict[str, Any]:
    """The columns of a run that ends. ``text`` is for people: the exit, or what somebody wrote; else the word for ``how``."""
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
    """End open runs of some timelines and entities (one label), ``key`` None: any; the runs, in order of ids. One statement."""
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
