"""Tasks that wait until somebody approves or rejects them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import connections
from django.db.models import Q, prefetch_related_objects

from timeline.lifecycle import WAITING
from timeline.models import EntityRef, ScheduledTask
from timeline.registry import registry
from timeline.store.earliest import WALKED
from timeline.store.guiding import guided
from timeline.store.holds import holds_over
from timeline.store.waiting import Wait, causes_of, met_among
from timeline.timing import EARLIEST, LATEST, When

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet


@dataclass(frozen=True, slots=True)
class Undecided:
    """
    A task that waits until somebody decides.

    Args:
        task: Read with its run.
        when: As it is declared, with its approval.
        is_held: Whether it is on hold: it may be decided, and runs when it is released.
    """

    task: ScheduledTask
    when: When
    is_held: bool = False

    @property
    def place(self) -> tuple[datetime, UUID]:
        """
        Where it stands in the order of waits: by its due time, less the time that there is for a decision. This is the time
        since when it waits, unless somebody has moved the task.
        """
        return self.task.scheduled_at - self.when.offset.exact, self.task.pk

    @property
    def since(self) -> datetime:
        """Since when it waits."""
        return self.until - self.when.offset.exact

    @property
    def until(self) -> datetime:
        """Until when a decision counts."""
        return self.task.nominal_at

    @property
    def right(self) -> str:
        """The permission of those who may decide."""
        return self.when.approval.by if self.when.approval is not None else ""


def asking_tasks(
    tasks: ScheduledTaskQuerySet, timeline: str = "", *, after: tuple[datetime, UUID] | None, most: int, now: datetime
) -> list[Undecided]:
    """
    List tasks that wait for a decision, the longest wait first. A few of them may be decided already: see ``still_asking``.

    Tasks that are due are not among them: what is decided is due, and so is what nobody has decided in time. Each kind and
    state is looked up separately, in the order of its index, so that no more rows are read than are shown. On PostgreSQL, this
    is one statement.

    Args:
        tasks: Those that the reader may see.
        timeline: Only tasks of this timeline; empty: all.
        after: The place of the last one that was listed, to continue after it; None: begin with the first.
        most: How many at most.
        now: Story time.
    """
    asked = {key: when for known in registry if timeline in ("", known.name) for key, when in known.approvals.items()}
    parts = [part[:most] for key, when in asked.items() for part in _parts(tasks, key, when, after, now)]
    if not parts:
        return []
    if connections[tasks.db].features.supports_slicing_ordering_in_compound:
        parts = [parts[0].union(*parts[1:], all=True)]
    with guided(WALKED, using=tasks.db):
        found = [Undecided(task, asked[task.task_key]) for part in parts for task in part]
    return sorted(found, key=lambda each: each.place)[:most]


def _parts(
    tasks: ScheduledTaskQuerySet, key: str, when: When, after: tuple[datetime, UUID] | None, now: datetime
) -> Iterator[ScheduledTaskQuerySet]:
    """The tasks of one kind that wait for a decision, each state by itself."""
    at, pk = after or (EARLIEST, UUID(int=0))
    if at >= LATEST - when.offset.exact:
        return  # None is due so late.
    begin = at + when.offset.exact
    # When the handler waits for something else, after the decision, the row has other events. A row that was made when the
    # approval had another name can be decided as well.
    asks = Q(awaits=" ".join(when.awaits)) | Q(awaits__gt="", attempt=0)
    waiting = tasks.filter(asks, task_key=key, nominal_at__gt=now, scheduled_at__gt=now)
    if after is not None:
        waiting = waiting.filter(Q(scheduled_at__gt=begin) | Q(pk__gt=pk), scheduled_at__gte=begin)
    for state in sorted(WAITING):
        yield waiting.filter(state=state).order_by("scheduled_at", "pk")


def still_asking(found: Iterable[Undecided], *, using: str) -> list[Undecided]:
    """
    Leave out those that are decided already, and say which are on hold. Three statements, if there are any.

    What is decided is due at once, but somebody may move it to a later time again.
    """
    found = [each for each in found if each.task.run_id]  # What is scheduled ad hoc asks for no approval.
    if not found:
        return []
    prefetch_related_objects([each.task for each in found], "run")
    met = met_among([_wait_of(each) for each in found], using=using)
    held = holds_over([each.task for each in found], using=using)
    return [
        Undecided(each.task, each.when, each.task.pk in held)
        for each, is_decided in zip(found, met, strict=True)
        if not is_decided
    ]


def _wait_of(each: Undecided) -> Wait:
    """The wait of a task as its row has it. Its events are recorded for the entity that the row names."""
    task = each.task
    return Wait(
        events=tuple({*each.when.awaits, *task.awaits.split()}),
        key="",
        of=EntityRef(task.awaits_label, task.awaits_id),
        since=task.run.known_since if task.run is not None else task.created_at,
        until=task.nominal_at,
        but=causes_of(task),
    )
