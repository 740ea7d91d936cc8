"""Kinds with a limit, of which only so many tasks may be under way at once: which have waiting tasks, and which compete."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from django.db import connections

from timeline.dialects import dialect_of
from timeline.registry import registry
from timeline.store.holds import NOTHING_ON_HOLD, on_hold


class LimitedKind(NamedTuple):
    """
    A kind with a limit: only so many of its tasks may be under way at once.

    Args:
        task_key: Key of the kind.
        places: The number of places of each key of the limit.
        on_hold: Whether entities are on hold. Then their tasks are skipped.
        others: Kinds that compete with it for the same keys, each with the number of places of its own limit. A waiting task of
            another kind goes first if it is more urgent, or as urgent and due earlier, and its kind has a place.
    """

    task_key: str
    places: int
    on_hold: bool = False
    others: tuple[tuple[str, int], ...] = ()

    @property
    def parts(self) -> frozenset[str]:
        """Names of the optional lines that a statement about it needs."""
        asked = {"on_hold": self.on_hold, "shared": self.others, "shared_on_hold": self.on_hold and self.others}
        return frozenset(name for name, is_asked in asked.items() if is_asked)


def limited_kinds(task_keys: Sequence[str], *, using: str) -> list[LimitedKind]:
    """
    Those of these kinds that have tasks waiting for a place, and are not on hold. No statement if no kind is given; a second
    one only if anything is on hold.
    """
    if not task_keys:
        return []
    dialect = dialect_of(using)
    with connections[using].cursor() as cursor:
        cursor.execute(dialect.sql("limited_kinds"), {"task_keys": dialect.list_of(task_keys)})
        rows = cursor.fetchall()
    held = on_hold(using=using) if rows and rows[0][1] else NOTHING_ON_HOLD
    limits = {task_key: registry.task(task_key)[1].limit for task_key, _some in rows if not held.covers(task_key)}
    return competing(
        [
            LimitedKind(task_key, limit.most, held.has_entities)
            for task_key, limit in limits.items()
            if limit is not None
        ]
    )


def competing(kinds: Iterable[LimitedKind]) -> list[LimitedKind]:
    """Set for each of some kinds which of the others compete with it for the same keys."""
    sharing: dict[tuple[str, bool], list[LimitedKind]] = defaultdict(list)
    kinds = list(kinds)
    for kind in kinds:
        sharing[_shared_by(kind)].append(kind)
    return [
        kind._replace(
            others=tuple((other.task_key, other.places) for other in sharing[_shared_by(kind)] if other != kind)
        )
        for kind in kinds
    ]


def _shared_by(kind: LimitedKind) -> tuple[str, bool]:
    """Kinds that may have the same keys share this: the name of the key, and whether the value of a field is part of it."""
    limit = registry.task(kind.task_key)[1].limit
    return (limit.key or kind.task_key, bool(limit.by)) if limit is not None else (kind.task_key, False)
