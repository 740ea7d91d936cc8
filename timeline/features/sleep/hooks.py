"""Where sleep takes part: a handler may call it, and its task then rests as one that waits does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.features.sleep.calls import Sleeper
from timeline.features.sleep.sentences import SLEEPS
from timeline.hooks import Hooks

if TYPE_CHECKING:
    from timeline.definition import Timeline
    from timeline.engine.attempts import Attempt


def _sleeper(_context: Timeline, attempt: Attempt, using: str) -> Sleeper:
    return Sleeper(attempt, using)


HOOKS = Hooks(parts=(("sleeper", _sleeper),), sentences=(SLEEPS,))
