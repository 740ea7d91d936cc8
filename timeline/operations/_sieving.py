"""Sieve: find which of many runs have to be planned, one portion at a time. It learns when to ask the database is no use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from timeline.store.standing import RunRef, in_doubt

MOST: Final = 0.75  # If more of a timeline's runs are in doubt, it is faster to plan all without asking.
UNASKED: Final = 4  # For so many portions the database is not asked. Then it is asked again, as other runs may differ.


class Sieve:
    """
    Finds the runs to plan, in one portion after another.

    To ask the database takes a tenth of the time of planning. After a release that changes all runs, it would rule out none.
    """

    def __init__(self) -> None:
        self._unasked: dict[str, int] = {}

    def to_plan(self, refs: Sequence[RunRef], *, now: datetime, using: str) -> set[UUID]:
        """
        Find the open runs that have to be planned: those in doubt, and all runs of timelines for which the database is not
        asked.

        Args:
            refs: The runs of the next portion.
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
