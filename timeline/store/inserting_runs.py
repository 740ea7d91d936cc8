"""The rows of runs that begin, and of machines' runs their first entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

from timeline.ids import uuid7_texts
from timeline.models import RunEntry, TimelineRun
from timeline.signals import Entered
from timeline.store.inserting import Insertion, columns_of
from timeline.store.mirroring import mirror_states
from timeline.store.telling import is_entering_heard, tell_entered

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
    for beginning, key in zip(moving, uuid7_texts(len(moving)), strict=True):
        beginning.entry_id = key
    rows = [
        {
            "id": beginning.entry_id,
            "run_id": beginning.columns["id"],
            "seq": 0,
            "at": beginning.columns["state_at"],
            "to_state": beginning.columns["state"],
            "back": beginning.columns.get("back", ""),
            "event": beginning.event,
            "cause_id": beginning.columns["started_by_id"],
            "actor": beginning.actor,
        }
        for beginning in moving
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


def tell_begun(beginnings: Sequence[Beginning], *, using: str) -> None:
    """Tell those who listen of those that are a machine's, before the commit."""
    if is_entering_heard():
        tell_entered([_entered(beginning) for beginning in beginnings if "state" in beginning.columns], using=using)


def _entered(beginning: Beginning) -> Entered:
    columns = beginning.columns
    return Entered(
        entry_id=UUID(beginning.entry_id),
        run_id=columns["id"],
        timeline=columns["timeline"],
        key=columns["key"],
        entity_label=columns["entity_label"],
        entity_id=columns["entity_id"],
        seq=0,
        from_state="",
        to_state=columns["state"],
        event=beginning.event,
        at=columns["state_at"],
    )
