"""Edges: write the moves in the tables of machines for the database, which refuses all other moves."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Set
from typing import Final
from uuid import UUID, uuid5

from django.db import IntegrityError, connections, transaction

from timeline.definition import Definition
from timeline.models import Edge
from timeline.registry import registry
from timeline.store.insert import insert_missing

logger = logging.getLogger("timeline")

Pair = tuple[str, str]
REFUSED: Final = "timeline: this machine has no such move"  # The message of the trigger.
_EDGES: Final = UUID("2f0c7f5e-6d2b-4d0e-9a53-3c1f0f6f3b1d")  # The namespace of the ids of edges; any, and always this.

# Alias and name of a machine → the edges that this process has seen committed.
_seen: Final[dict[tuple[str, str], frozenset[Pair]]] = {}


def missing_edges(using: str) -> dict[str, list[Pair]]:
    """The moves of machines that are missing in the database, by machine; empty if the table does not exist yet."""
    wanted = _wanted(registry)
    if not wanted or Edge._meta.db_table not in connections[using].introspection.table_names():
        return {}
    there = _there(wanted, using)
    missing = {name: sorted(pairs - there.get(name, set())) for name, pairs in wanted.items()}
    return {name: pairs for name, pairs in missing.items() if pairs}


def see_edges(definitions: Iterable[Definition] = registry, *, using: str) -> None:
    """Write missing edges of machines, in the caller's transaction or a new one. A process asks only until it has seen them."""
    see_pairs(_wanted(definitions), using=using)


def see_pairs(asked: Mapping[str, frozenset[Pair]], *, using: str) -> None:
    """
    Write some missing edges only, machine → pairs of states: a caller with locked rows must not wait for who writes others.
    """
    wanted = {name: pairs for name, pairs in asked.items() if not pairs <= _seen.get((using, name), frozenset())}
    if not wanted:
        return
    there = _there(wanted, using)
    # In a fixed order, so that two transactions that write the same edges cannot deadlock.
    missing = sorted((name, *pair) for name, pairs in wanted.items() for pair in pairs - there.get(name, set()))
    rows = [Edge(id=id_of(*edge), timeline=edge[0], from_state=edge[1], to_state=edge[2]) for edge in missing]
    insert_missing(rows, using=using)
    seen = {name: pairs | there.get(name, set()) for name, pairs in wanted.items()}
    transaction.on_commit(lambda: _remember(seen, using), using=using)


def id_of(machine: str, source: str, target: str) -> UUID:
    """The id of an edge, the same in each database: ``loaddata`` from another one finds the edges that ``migrate`` wrote."""
    return uuid5(_EDGES, "\x1f".join((machine, source, target)))


def remove_edges(machine: str, *, but: Set[Pair], using: str) -> list[Pair]:
    """Delete the edges of a machine other than ``but``, and return them. The caller has checked that no process needs them."""
    rows = Edge.objects.using(using).filter(timeline=machine).order_by("from_state", "to_state").select_for_update()
    old = {key: (source, target) for key, source, target in rows.values_list("pk", "from_state", "to_state")}
    gone = {key: pair for key, pair in old.items() if pair not in but}
    Edge.objects.using(using).filter(pk__in=list(gone)).delete()
    transaction.on_commit(lambda: forget_edges(using), using=using)
    return list(gone.values())


def mind_refusal(error: IntegrityError, *, using: str) -> None:
    """
    If the database refuses a move that this process had written, a backup may have been restored: write the edges again at the
    next try. The present transaction cannot go on.
    """
    if REFUSED in str(error):
        logger.warning(
            "The database %s has refused a move of a machine; its moves are written anew at the next try.", using
        )
        forget_edges(using)


def forget_edges(using: str) -> None:
    """Forget which edges are in the database, since its tables may have been emptied."""
    for known in [known for known in _seen if known[0] == using]:
        del _seen[known]


def _remember(wanted: Mapping[str, frozenset[Pair]], using: str) -> None:
    _seen.update({(using, name): pairs | _seen.get((using, name), frozenset()) for name, pairs in wanted.items()})


def _wanted(definitions: Iterable[Definition]) -> dict[str, frozenset[Pair]]:
    return {known.name: known.machine.edges for known in definitions if known.machine is not None}


def _there(wanted: Iterable[str], using: str) -> dict[str, set[Pair]]:
    found: dict[str, set[Pair]] = {}
    edges = Edge.objects.using(using).filter(timeline__in=sorted(wanted))
    for name, source, target in edges.values_list("timeline", "from_state", "to_state"):
        found.setdefault(name, set()).add((source, target))
    return found
