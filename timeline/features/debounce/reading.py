"""What is told of the task of a burst: how many events it stands for, and until when it waits for quiet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from timeline.features.debounce.declaration import BURST, NUMBERED, Debounce, debounced, moment_in
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.timing import told_time
from timeline.timing.offsets import Offset

if TYPE_CHECKING:
    from timeline.definition import Definition


def told_burst(task: ScheduledTask, *, now: datetime) -> Iterator[str]:
    """Tell of the burst of a task, if it has one. No statement."""
    burst = task.payload.get(BURST) if isinstance(task.payload, Mapping) else None
    if not task.occurrence.startswith(NUMBERED) or not isinstance(burst, Mapping):
        return
    first, last, latest = (moment_in(burst.get(name)) for name in ("first_at", "last_at", "latest_at"))
    count = burst.get("events")
    if first is None or last is None or not isinstance(count, int):
        return
    said = ngettext(
        "It stands for %(count)s event, which came on %(first)s.",
        "It stands for %(count)s events in a burst, the first on %(first)s, the last on %(last)s.",
        count,
    )
    yield said % {
        "count": number_format(count, force_grouping=True),
        "first": told_time(first),
        "last": told_time(last),
    }
    if task.state == State.SCHEDULED and task.planned_at is not None and task.scheduled_at > now:
        if latest is None:
            yield _("It waits for quiet until %(at)s; another event moves it.") % {"at": told_time(task.scheduled_at)}
        else:
            said = _("It waits for quiet until %(at)s; another event moves it, to %(last)s at the latest.")
            yield said % {"at": told_time(task.scheduled_at), "last": told_time(latest)}


def in_inventory(definitions: Iterable[Definition], *, using: str) -> dict[str, dict[str, object]]:  # noqa: ARG001 (as others)
    """When tasks of bursts are due, in words. No statement."""
    return {
        definition.task_key(name): {"when": _told(debounce)}
        for definition in definitions
        for name, debounce in debounced(definition)
    }


def _told(debounce: Debounce) -> str:
    known = {
        "quiet": Offset(exact=debounce.quiet).describe(),
        "events": str(pgettext("timeline", " or ")).join(debounce.events),
    }
    if debounce.at_latest is None:
        return _("%(quiet)s after the last %(events)s") % known
    known["latest"] = Offset(exact=debounce.at_latest).describe()
    return _("%(quiet)s after the last %(events)s, at the latest %(latest)s after the first") % known
