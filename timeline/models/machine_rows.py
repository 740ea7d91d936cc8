"""Machines: ``Edge``, the moves that the database allows; ``RunEntry``, those of a run; and rows that a plan needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db import models
from django.db.models import Count, F, Max, OuterRef, Subquery
from django.db.models.functions import Coalesce

from timeline.ids import uuid7
from timeline.models.run import TimelineRun

if TYPE_CHECKING:
    from timeline.definition import Definition

RENAMED: Final = "renamed"  # The event of an entry that is written when a state gets another name in the code.
Known = Sequence[tuple[TimelineRun, "Definition"]]


class Edge(models.Model):
    """A move from one state of a machine to another. Edges are added from the code, and never removed automatically."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    timeline = models.CharField(max_length=50)
    from_state = models.CharField(max_length=50)
    to_state = models.CharField(max_length=50)

    class Meta:
        db_table = "timeline_edge"
        constraints = [
            models.UniqueConstraint(fields=["timeline", "from_state", "to_state"], name="timeline_edge_once")
        ]

    def __str__(self) -> str:
        return f"{self.timeline}: {self.from_state} → {self.to_state}"


class RunEntry(models.Model):
    """
    One move of a run, or its beginning: ``seq`` 0, from no state.

    ``seq`` has no gaps, and the last is the run's ``moves``. Replaying the entries in this order gives the run's ``state``,
    ``state_at``, ``back`` and ``moves``. ``at`` is story time. ``cause_id`` is the id of the event; NULL: there was none,
    as when somebody begins a run by hand, or a state is renamed.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    # The unique key with ``seq`` finds the entries of a run. The database has no foreign key here: an entry is written with the
    # run locked, and prune deletes both.
    run = models.ForeignKey(
        TimelineRun, db_index=False, db_constraint=False, on_delete=models.DO_NOTHING, related_name="entries"
    )
    seq = models.IntegerField()
    at = models.DateTimeField()
    from_state = models.CharField(max_length=50, blank=True, default="")
    to_state = models.CharField(max_length=50)
    back = models.CharField(max_length=50, blank=True, default="")
    event = models.CharField(max_length=100, blank=True, default="")
    cause_id = models.UUIDField(null=True, blank=True)
    actor = models.CharField(max_length=150, blank=True, default="")

    class Meta:
        db_table = "timeline_runentry"
        constraints = [models.UniqueConstraint(fields=["run", "seq"], name="timeline_run_entry_seq")]
        verbose_name_plural = "run entries"

    def __str__(self) -> str:
        return f"{self.from_state} → {self.to_state}"


@dataclass(frozen=True, slots=True)
class RowsToPlan:
    """The rows from which runs are planned. Ended rows of earlier visits to a state are left out: all moves cost the same."""

    whole: list[UUID]  # Runs of which all rows are read.
    in_states: list[UUID]  # Runs of which open rows are read, and of ended ones those with the following keys.
    others: list[str]  # Keys of tasks that are not bound to states.
    bound: list[str]
    visits: list[str]  # Which rows of bound tasks: the occurrences of the present visits.


def wanted_of(known: Known, *, moved: bool = False) -> RowsToPlan:
    """Which rows to read to plan some runs. After a run has ``moved``, no row of its present visit can have ended."""
    whole = [run.id for run, definition in known if not definition.in_states]
    others, bound, visits, in_states = set[str](), set[str](), set[str](), list[UUID]()
    for definition, runs in _by_definition(known):
        keys = {definition.task_key(name) for name in definition.in_states}
        others |= {definition.task_key(name) for name in definition.tasks} - keys
        in_states += [run.id for run in runs]
        if not moved:
            bound |= keys
            visits |= {str(run.moves) for run in runs}
    return RowsToPlan(whole, in_states, sorted(others), sorted(bound), sorted(visits))


def tries_of(known: Known, *, using: str) -> dict[UUID, int]:
    """
    Run → its entries into its present state since the last move between working states, at least 1.

    Only for states where tasks come later with each try. One statement for each machine with such runs.
    """
    waiting = [(run, definition) for run, definition in known if run.state and run.state in definition.backing_off]
    tries: dict[UUID, int] = {}
    for definition, runs in _by_definition(waiting):
        working = sorted(definition.machine.working) if definition.machine else []
        entries = RunEntry.objects.using(using)
        moves = entries.filter(run=OuterRef("run"), from_state__in=working, to_state__in=working)
        progress = moves.exclude(from_state=F("to_state")).values("run").annotate(last=Max("seq")).values("last")
        since = entries.filter(run__in=[run.pk for run in runs], seq__gt=Coalesce(Subquery(progress), -1))
        since = since.exclude(event=RENAMED, from_state=F("to_state"))  # It changed only ``back``.
        counts = since.values("run", "to_state").annotate(number=Count("pk")).values_list("run", "to_state", "number")
        counted = {(run_id, state): number for run_id, state, number in counts}
        tries |= {run.pk: max(counted.get((run.pk, run.state), 0), 1) for run in runs}
    return tries


def _by_definition(known: Known) -> list[tuple[Definition, list[TimelineRun]]]:
    """Runs by their timelines, for timelines that have tasks bound to states."""
    found: dict[str, tuple[Definition, list[TimelineRun]]] = {}
    for run, definition in known:
        if definition.in_states:
            found.setdefault(definition.name, (definition, []))[1].append(run)
    return list(found.values())
