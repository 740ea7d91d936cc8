"""
Conditions and effects of moves. Conditions are asked when moves are decided, of entities that are locked; effects are had
when all is written, in the transaction of the move.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db.models import Model
from django.utils.translation import gettext_lazy as _

from timeline.exceptions import InvalidInput
from timeline.features.machines.choices import Choice, Edge, Passage
from timeline.features.machines.table import BACK, IGNORE, STAY
from timeline.models import EntityRef, TimelineRun
from timeline.models.entities import load_entities
from timeline.store.database_errors import of_host

if TYPE_CHECKING:
    from timeline.features.machines.moves import Moving
    from timeline.features.machines.table import Target
    from timeline.operations.record_event import EventFields

_acting: ContextVar[frozenset[UUID]] = ContextVar("acting", default=frozenset())  # Runs whose effects are being had.


@dataclass(frozen=True, slots=True)
class Taken:
    """The way that a run takes: the entity, and what it is told. ``edge`` has no condition that does not hold."""

    edge: Edge
    entity: Model | None
    passage: Passage


def entities_asked(
    asked: Iterable[tuple[TimelineRun, Target | None]], held: Mapping[EntityRef, Model | None], *, using: str
) -> dict[EntityRef, Model | None]:
    """
    The entities of runs of which conditions are asked, read under their locks; empty: nothing is asked. One statement for each
    model. ``UnreadableEntity`` for the first that cannot be read.
    """
    refs = {run.entity_ref for run, target in asked if isinstance(target, Choice)}
    missing = {ref for ref in refs if ref.label and held.get(ref) is None}
    found = load_entities(missing, using=using)
    for ref in missing & found.unreadable.keys():
        raise found.unreadable[ref]
    return {ref: found.get(ref) if held.get(ref) is None else held[ref] for ref in refs}


def way_of(run: TimelineRun, choice: Choice, entity: Model | None, said: EventFields) -> Taken | None:
    """The first way whose condition holds; None: none does."""
    for edge in choice.edges:
        passage = Passage(
            event=said.name,
            payload=said.payload,
            actor=said.actor,
            source=run.state,
            target=_end(edge.target, run),
            run=run,
        )
        with of_host():
            applies = edge.applies(entity, passage)
        if applies:
            return Taken(edge, entity, passage)
    return None


def refuse_within(runs: Iterable[TimelineRun], event: str) -> None:
    """Refuse an event that moves a run whose effects are just being had: ``InvalidInput``."""
    acting = _acting.get()
    if acting and any(run.pk in acting for run in runs):
        problem, remedy = (
            _("%(event)s is emitted in an effect of a move of the same run."),
            _("Let a task do it: on(…)."),
        )
        raise InvalidInput("event", problem, remedy, event=event)


def act(moves: Sequence[Moving], moved: Sequence[TimelineRun]) -> None:
    """Have the effects of moves that were written, in their order. What an effect raises undoes the moves."""
    after = {run.pk: run for run in moved}
    doing = [(move.taken, after[move.run.pk]) for move in moves if move.taken is not None and move.run.pk in after]
    token = _acting.set(_acting.get() | after.keys())
    try:
        for taken, run in doing:
            with of_host():
                taken.edge.act(taken.entity, replace(taken.passage, run=run))
    finally:
        _acting.reset(token)


def _end(target: Any, run: TimelineRun) -> str:
    if target is BACK:
        return run.back
    return run.state if target in (STAY, IGNORE) else str(target)
