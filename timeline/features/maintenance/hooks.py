"""Where maintenance takes part: the log is counted into figures, and what is old is deleted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from timeline.clocks import story_now
from timeline.conf import get_settings
from timeline.features.maintenance.figures import forget_figures, roll_up
from timeline.features.maintenance.prune import prune
from timeline.hooks import Hooks
from timeline.signals import pruning
from timeline.store.site import confirm_site

COUNTED: Final = 2000  # Entries of the log counted at a time.
COUNTED_AT_ONCE: Final = 100  # Batches of the log that are counted in one call of ``timeline.maintain``.
PRUNED_AT_ONCE: Final = 10  # Batches of each kind that are deleted in one call; the next call deletes more.


def _count_some(clock: Callable[[], datetime], using: str) -> bool:
    if roll_up(size=COUNTED, using=using):
        return True
    forget_figures(now=clock(), using=using)
    return False


def _prune(using: str) -> None:
    retention = get_settings().RETENTION
    if retention is None:
        return
    before = story_now(using) - retention
    for _ in range(PRUNED_AT_ONCE):
        others = sum(int(count or 0) for _, count in pruning.send(None, using=using, ended_before=before))
        if not any(prune(ended_before=before, using=using)) and not others:
            break


def count_log(using: str) -> None:
    confirm_site(using=using)
    for _ in range(COUNTED_AT_ONCE):
        if not roll_up(using=using):
            break
    forget_figures(now=story_now(using), using=using)


HOOKS = Hooks(between=(_count_some,), maintains=(_prune, count_log))
