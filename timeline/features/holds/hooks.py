"""Where holds and brakes take part: what is on hold does not run, and polls go on with holds that end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from timeline.features.holds.precheck import braked, held_back
from timeline.features.holds.reading import held_until, told_of
from timeline.features.holds.release import release_due
from timeline.features.holds.sentences import SENTENCES
from timeline.features.holds.store import IS_ANY_OPEN, newest, next_release, on_hold, rename, some_open
from timeline.hooks import Hindrance, Hooks, Poll
from timeline.models import Hold

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from timeline.engine.attempts import Attempt
    from timeline.lifecycle import Reason
    from timeline.models.task import ScheduledTaskQuerySet

_ANY_HOLD: Final = "timeline_any_hold"


def _release(poll: Poll) -> None:
    release_due(now=poll.clock(), using=poll.using)


def _held_back(attempts: Sequence[Attempt], *, is_sure: bool, using: str) -> dict[UUID, Reason]:
    return held_back(attempts, True if is_sure else None, using=using)


def _without_an_end(
    tasks: ScheduledTaskQuerySet, *, holds: bool, **_others: object
) -> Iterator[tuple[str, QuerySet[Any]]]:
    if holds:
        yield "holds", Hold.objects.using(tasks.db).open().filter(until__isnull=True).oldest_first()


HINDRANCE: Final = Hindrance(
    kept=on_hold,
    in_force=some_open,
    words=held_until,
    told=told_of,
    end=release_due,
    next_end=next_release,
    newest=newest,
)
HOOKS = Hooks(
    chores=((attrgetter("signed.some_on_hold"), _release),),
    flags=((_ANY_HOLD, IS_ANY_OPEN),),
    flagged=((_ANY_HOLD, _held_back),),
    admissions=((attrgetter("declared.options.park_above"), braked),),
    hindrances=(HINDRANCE,),
    asks=(_without_an_end,),
    relabels=(rename,),
    blanks=((Hold, dict.fromkeys(("reason", "actor", "released_by", "release_reason"), "")),),
    sentences=SENTENCES,
)
