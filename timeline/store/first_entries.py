"""First entries of new runs of machines: insert them with the runs, show them on entities, and send signals for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from timeline.ids import uuid7_texts
from timeline.models import RunEntry
from timeline.signals import Entered
from timeline.store.inserting import Insertion, columns_of
from timeline.store.mirroring import mirror_states
from timeline.store.telling import is_entering_heard, tell_entered

if TYPE_CHECKING:
    from timeline.store.beginning import Beginning


def inserting_entries(moving: Sequence[Beginning], *, under: str = "", using: str) -> Insertion:
    """The insertion of the first entry of each run. All of them are runs of machines."""
    for beginning, key in zip(moving, uuid7_texts(len(moving)), strict=True):
        beginning.entry_id = key
    rows = [
        {
            "id": beginning.entry_id,
            "run_id": beginning.id,
            "seq": 0,
            "at": beginning.alike["state_at"],
            "to_state": beginning.alike["state"],
            "back": beginning.alike.get("back", ""),
            "event": beginning.event,
            "cause_id": beginning.started_by_id,
            "actor": beginning.actor,
        }
        for beginning in moving
    ]
    return Insertion(RunEntry, columns_of(rows), under=under, taken=False, using=using)


def show_begun(moving: Sequence[Beginning], *, using: str) -> None:
    """Write the states to the entities that show them (no statement if none do), and send the signals, before the commit."""
    said = [(known.alike["timeline"], known.ref, known.alike["key"], known.alike["state"]) for known in moving]
    mirror_states(said, using=using)
    if is_entering_heard():
        tell_entered([_entered(beginning) for beginning in moving], using=using)


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
