"""Where holds and brakes take part: what is on hold does not run, and polls go on with holds that end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final
from uuid import UUID

from timeline.features.holds.precheck import braked, held_back
from timeline.features.holds.release import release_due
from timeline.features.holds.store import IS_ANY_OPEN
from timeline.hooks import Hooks, Poll

if TYPE_CHECKING:
    from timeline.engine.attempts import Attempt
    from timeline.lifecycle import Reason

_ANY_HOLD: Final = "timeline_any_hold"


def _release(poll: Poll) -> None:
    if poll.signed.some_on_hold:
        release_due(now=poll.clock(), using=poll.using)


def _held_back(
    attempts: Sequence[Attempt], *, flags: Mapping[str, bool], now: datetime, using: str
) -> dict[UUID, Reason]:
    return held_back(attempts, flags.get(_ANY_HOLD), using=using)


HOOKS = Hooks(chores=(_release,), flags=((_ANY_HOLD, IS_ANY_OPEN),), prechecks=(_held_back,), admissions=(braked,))
