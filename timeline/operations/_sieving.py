"""Sieve: which of many runs are to be planned, portion by portion. Learns where it helps nothing to ask the database first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from timeline.store.standing import RunRef, in_doubt

MOST: Final = 0.75  # Of a timeline's runs: if more are in doubt, it is quicker to plan all of them unasked.
UNASKED: Final = 4  # Portions. Then it asks again, as later runs may be others.


class Sieve:
    """
    Sifts portions of runs, one after another.

    To ask takes a tenth of the time that it takes to plan. After a release that changes all runs it would rule out none.
    """

    def __init__(self) -> None:
        self._unasked: dict[str, int] = {}

    def to_plan(self, refs: Sequence[RunRef], *, now: datetime, using: str) -> set[UUID]:
        """
        Tell which of some open runs are to be planned: all that are in doubt, and of some timelines simply all.

        Args:
            refs: The next portion.
            now: Story time.
            using: Database alias.
        """
        several = Counter(ref.timeline for ref in refs)
        unasked = {name for name in several if self._unasked.get(name)}
        found = set(in_doubt((ref for ref in refs if ref.timeline not in unasked), now=now, using=using))
        doubtful = Counter(ref.timeline for ref in refs if ref.id in found)
        for name, number in several.items():
            if name in unasked:
                self._unasked[name] -= 1
            elif doubtful[name] > number * MOST:
                self._unasked[name] = UNASKED
        return found | {ref.id for ref in refs if ref.timeline in unasked}
