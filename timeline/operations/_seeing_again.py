"""See again: what receivers of the host have done to runs and their entities since both were locked."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from timeline.models import EntityRef, TimelineRun
from timeline.models.entities import Entities, load_entities
from timeline.store.telling import may_hosts_write


def seen_again(
    runs: Sequence[TimelineRun], entities: Entities, there: Collection[EntityRef], *, using: str
) -> tuple[Entities, Collection[EntityRef]]:
    """
    Read locked runs and their entities again, if receivers of the host may have ended runs, or changed or deleted entities.
    Two statements then, in the transaction that holds the locks; otherwise none.

    Args:
        runs: They are brought up to date.
        entities: As they were read.
        there: Entities that exist, and were not read.
        using: Database alias.

    Returns:
        The entities, and those that exist and were not read, as they are now.
    """
    if not runs or not may_hosts_write():
        return entities, there
    found = TimelineRun.objects.using(using).in_bulk([run.pk for run in runs])
    for run in runs:
        run.__dict__.update((name, value) for name, value in vars(found[run.pk]).items() if name != "_state")
    return load_entities({run.entity_ref for run in runs if run.entity_label}, using=using), ()
