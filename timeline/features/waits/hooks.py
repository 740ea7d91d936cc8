"""Where waits take part: a task rests until its event comes, and whoever writes that event wakes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from timeline.engine.failures import at_rest
from timeline.features.waits.calls import EventWaiter, Waits, awaited_first, begin_to_wait, still_to_wait
from timeline.features.waits.reading import asked_of_people
from timeline.features.waits.sentences import SENTENCES
from timeline.features.waits.store import rename
from timeline.features.waits.wake import note_deletion, wake_noted
from timeline.hooks import Hooks, SomeColumns
from timeline.models.entities import NO_ENTITY, EntityRef
from timeline.models.kin import kin_of

if TYPE_CHECKING:
    from timeline.definition import Timeline
    from timeline.engine.attempts import Attempt
    from timeline.models import TimelineRun
    from timeline.store.transition import Write


AWAITED: Final = ("awaits", "awaits_key")


def _rest_first(attempt: Attempt, using: str) -> Write | None:
    """Check what its schedule waits for; the task rests if that has not come."""
    try:
        attempt.awaited = awaited_first(attempt, using)
    except Waits as waits:
        return replace(at_rest(attempt, waits), entered=False)
    return None


def _waiter(context: Timeline, attempt: Attempt, using: str) -> EventWaiter | None:
    return None if attempt.declared.options.bulk is not None else EventWaiter(attempt, using, context._context)


def _begin(
    writes: Sequence[Write],
    runs: Mapping[UUID, TimelineRun],
    *,
    now: datetime,
    using: str,
) -> Set[UUID]:
    begin_to_wait(writes, now=now, using=using)
    return frozenset()


def _fill(rows: Sequence[tuple[EntityRef, dict[str, Any]]], *, using: str) -> dict[str, list[Any]]:
    """For which events new rows wait, and whose."""
    kin = kin_of({ref for ref, planned in rows if "awaits" in planned}, using=using)
    roots = [kin[ref][0] if "awaits" in planned else NO_ENTITY for ref, planned in rows]
    return {
        **{name: [planned.get(name, "") for _ref, planned in rows] for name in AWAITED},
        "awaits_label": [root.label for root in roots],
        "awaits_id": [root.id for root in roots],
    }


HOOKS = Hooks(
    notes=(wake_noted,),
    before_entry=((attrgetter("declared.waits"), _rest_first),),
    parts=(("waiter", _waiter),),
    decisions=(still_to_wait,),
    follows=(_begin,),
    some_columns=(SomeColumns(AWAITED, _fill),),
    deletions=(note_deletion,),
    relabels_later=(rename,),
    sentences=SENTENCES,
    functions=(("is_awaited", None),),
    asks=(asked_of_people,),
)
