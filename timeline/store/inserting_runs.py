"""The rows of runs that begin, and of machines' runs their first entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from timeline.ids import uuid7_texts
from timeline.models import RunEntry, TimelineRun
from timeline.store.inserting import Insertion, columns_of
from timeline.store.mirroring import mirror_states

if TYPE_CHECKING:
    from timeline.store.beginning import Beginning

_NO_STATE: Final = {"state": "", "state_at": None}


def inserting_runs(beginnings: Sequence[Beginning], *, under: str = "", using: str) -> Insertion:
    """Their rows; where some are a machine's, the others have no state."""
    rows = [beginning.columns for beginning in beginnings]
    if any("state" in columns for columns in rows):
        rows = [{**_NO_STATE, **columns} for columns in rows]
    return Insertion(TimelineRun, columns_of(rows), under=under, using=using)


def inserting_entries(beginnings: Sequence[Beginning], *, under: str = "", using: str) -> list[Insertion]:
    """The first entry of each run that is a machine's: nothing to insert, or one insertion."""
    moving = [beginning for beginning in beginnings if "state" in beginning.columns]
    if not moving:
        return []
    rows = [
        {
            "id": key,
            "run_id": beginning.columns["id"],
            "seq": 0,
            "at": beginning.columns["state_at"],
            "to_state": beginning.columns["state"],
            "back": beginning.columns.get("back", ""),
            "event": beginning.event,
            "cause_id": beginning.columns["started_by_id"],
            "actor": beginning.actor,
        }
        for beginning, key in zip(moving, uuid7_texts(len(moving)), strict=True)
    ]
    return [Insertion(RunEntry, columns_of(rows), under=under, taken=False, using=using)]


def mirror_begun(beginnings: Sequence[Beginning], *, using: str) -> None:
    """Write the states of those that are a machine's where their entities show it. No statement where none do."""
    moving = [beginning for beginning in beginnings if "state" in beginning.columns]
    if moving:
        said = [
            (known.columns["timeline"], known.ref, known.columns["key"], known.columns["state"]) for known in moving
        ]
        mirror_states(said, using=using)
