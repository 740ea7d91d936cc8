"""
Where features take part in the life of a task. The core asks here, and imports no feature.

A feature is a folder below ``timeline/features/`` that is named in ``FEATURES``. What it declares about definitions stands in
its module ``rules`` (a ``Rules``, asked when a class is declared, before models are there). What it does with rows stands in
its module ``hooks`` (a ``Hooks``). It may have one of them, both, or none. Each field is a tuple of functions; the core calls
those of all features, in the order of ``FEATURES``. ``now`` and ``using`` mean the same everywhere: story time, and the database's alias.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from uuid import UUID

from django.core.exceptions import ImproperlyConfigured

from timeline.features import FEATURES

if TYPE_CHECKING:
    from django.db.models import Model

    from timeline.definition import Definition, Task, Timeline
    from timeline.dispatch.claim import ClaimedBatch
    from timeline.engine.attempts import Attempt
    from timeline.exceptions import Rest
    from timeline.lifecycle import Reason
    from timeline.models import ScheduledTask
    from timeline.store.changes import Write
    from timeline.store.poll_queries import Signed

    Problem = tuple[str, str]  # What is wrong, and the remedy.
    Kind = tuple[UUID | None, str]  # Id of a run, key of a task.
    Refusal = Reason | Write | Rest | BaseException
    OfClass = Callable[[Definition], Iterable[Problem]]
    OfTask = Callable[[Definition, Task[Any, ..., Any]], Iterable[Problem]]
    OfModel = Callable[[Definition, type[Model]], Iterable[Problem]]
    Told = TypeVar("Told", bound="Rules | Hooks")


@dataclass(frozen=True, kw_only=True)
class Rules:
    """
    What a feature asks of a definition.

    Args:
        of_class: Problems of a class, by all that can be seen without models.
        of_task: Problems of one of its tasks.
        of_model: Problems of a class with the model of its entity.
    """

    of_class: tuple[OfClass, ...] = ()
    of_task: tuple[OfTask, ...] = ()
    of_model: tuple[OfModel, ...] = ()


@dataclass(slots=True)
class Poll:
    """
    A poll, as features see it.

    Args:
        memory: What a feature remembers in this process from poll to poll, by a key of its own.
        signed: What was read before the poll.
    """

    clock: Callable[[], datetime]
    using: str
    signed: Signed
    memory: dict[str, Any] = field(default_factory=dict)


class Source(Protocol):
    """Where tasks come from that cannot be had by kind and priority alone."""

    def claim(self, *, limit: int, now: datetime, using: str) -> list[ClaimedBatch]:
        """Claim available tasks, at most so many of a kind."""

    def is_any_ready(self, *, using: str) -> bool:
        """Whether the next claim finds something."""

    def groups(self, queue: str | None, *, using: str) -> Iterable[tuple[str, Callable[..., list[Attempt]]]]:
        """Kinds that have something available, with what begins a group: ``begin(most=, worker=, retried=, now=, using=)``."""

    def is_free(self, task: ScheduledTask, *, using: str) -> bool:
        """Whether this available task could be claimed now."""

    def claim_one(self, task: ScheduledTask, token: UUID, *, now: datetime, using: str) -> ScheduledTask:
        """Claim the one whose turn it is among those that compete with this one."""


@dataclass(frozen=True)
class SomeColumns:
    """
    Columns that only some new rows have, filled for many rows at once.

    Args:
        names: As the plans of rows name them; the first is in each plan that has any.
        fill: Given (entity, plan) of each row of one insertion: column → a value for each row.
    """

    names: tuple[str, ...]
    fill: Callable[..., Mapping[str, list[Any]]]


@dataclass(frozen=True, kw_only=True)
class Hooks:
    """
    What a feature does with rows.

    Polls:
        chores: Done once in each poll, by whoever polls, before tasks are claimed.
        long_work: A piece of work that many polls share; gives how many rows it changed.
        sources: See ``Source``.
        wakes: Told by each process that polls, once, before its first poll.
        between: A short piece of upkeep, done by a process that polls in its pauses; gives whether there is more to do.
        batches: Told by a Celery worker before it runs the tasks of a message.
        maintains: Upkeep in whole, by ``timeline.maintain``.

    An attempt:
        flags: Facts that the precheck reads with the runs: name → condition in SQL.
        prechecks: Of some attempts, those that must not run now: id of the task → why, or the outcome. Given the flags.
        admissions: The same, asked last, of those that count what they let in.
        before_entry: Asked before a handler is entered; an outcome: it is not.
        contexts: Give the context of a handler what it needs.
        errors: Decide what an error means for the outcome. ``together``: one call was for several tasks.
        losses: The same where the last worker of a task was lost.

    An outcome (of several tasks at once):
        releases: Change outcomes before anything is locked.
        decisions: Change outcomes that are not plain, under the locks of entities and runs.
        follows: Write what follows from outcomes that were written; give the ids of runs that changed by it.
        still_open: Of tasks that have ended: kinds of which others are still open, so that nothing follows yet.

    Rows:
        columns: Columns of a new row that come from the options of its task.
        inherits: Columns that a next revision has from the row before; ``is_known``: whether its task is declared.
        some_columns: See ``SomeColumns``.
        new_rows: Set columns of new rows before they are inserted.
        ends: Told of tasks that were cancelled, moved or run early by somebody, in that transaction.
        run_ends: Told of runs that have ended.
        shows: Told of runs that have begun or moved; with the instance that the caller holds, if there is one.
        deletions: Told of an entity that was deleted.
        successions: Let new revisions take over what those before them have; change the writes that end these.
        redrives: Told of tasks that have ended before the next revisions of them are inserted.
        migrated: Told that a database was migrated or flushed.
    """

    chores: tuple[Callable[[Poll], object], ...] = ()
    long_work: tuple[Callable[[Poll], int], ...] = ()
    sources: tuple[Source, ...] = ()
    wakes: tuple[Callable[[str], None], ...] = ()
    between: tuple[Callable[[Callable[[], datetime], str], bool], ...] = ()
    batches: tuple[Callable[[str], None], ...] = ()
    maintains: tuple[Callable[[str], None], ...] = ()

    flags: tuple[tuple[str, str], ...] = ()
    prechecks: tuple[Callable[..., Mapping[UUID, Refusal]], ...] = ()
    admissions: tuple[Callable[..., Mapping[UUID, Refusal]], ...] = ()
    before_entry: tuple[Callable[[Attempt, str], Write | None], ...] = ()
    contexts: tuple[Callable[[Timeline, Attempt, str], None], ...] = ()
    errors: tuple[Callable[..., Write], ...] = ()
    losses: tuple[Callable[..., Write], ...] = ()

    releases: tuple[Callable[[Sequence[Write]], Sequence[Write]], ...] = ()
    decisions: tuple[Callable[..., Sequence[Write]], ...] = ()
    follows: tuple[Callable[..., Set[UUID]], ...] = ()
    still_open: tuple[Callable[..., set[Kind]], ...] = ()

    columns: tuple[Callable[[str, Task[Any, ..., Any]], Mapping[str, Any]], ...] = ()
    inherits: tuple[Callable[..., Mapping[str, Any]], ...] = ()
    some_columns: tuple[SomeColumns, ...] = ()
    new_rows: tuple[Callable[..., None], ...] = ()
    ends: tuple[Callable[..., None], ...] = ()
    run_ends: tuple[Callable[..., None], ...] = ()
    shows: tuple[Callable[..., None], ...] = ()
    deletions: tuple[Callable[..., None], ...] = ()
    successions: tuple[Callable[..., list[Write]], ...] = ()
    redrives: tuple[Callable[..., None], ...] = ()
    migrated: tuple[Callable[..., None], ...] = ()


@cache
def rules() -> Rules:
    """What all features ask of definitions."""
    return _merged(Rules, "rules", "RULES")


@cache
def hooks() -> Hooks:
    """What all features do with rows. Not before the models are there."""
    return _merged(Hooks, "hooks", "HOOKS")


def _merged(what: type[Told], module: str, name: str) -> Told:
    told = list(_told(what, module, name))
    return what(
        **{each.name: tuple(chain.from_iterable(getattr(one, each.name) for one in told)) for each in fields(what)}
    )


def _told(what: type[Told], module: str, name: str) -> Iterator[Told]:
    for feature in FEATURES:
        folder = f"timeline.features.{feature}"
        if find_spec(folder) is None:
            raise _wrong(feature, "is not there", f"make the folder {folder}, or take the name out of FEATURES")
        if find_spec(f"{folder}.{module}") is None:
            continue
        try:
            declared = getattr(import_module(f"{folder}.{module}"), name, None)
        except Exception as error:
            raise _wrong(feature, f"cannot be loaded: {error!r}", f"see to {folder}.{module}") from error
        if not isinstance(declared, what):
            raise _wrong(feature, f"has no {name} of type {what.__name__}", f"see to {folder}.{module}")
        yield declared


def _wrong(feature: str, problem: str, remedy: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"The feature {feature!r} of timeline {problem}: {remedy}.")
