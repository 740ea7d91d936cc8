"""Parts of a sweep: what each part does, and how to mend items one by one if they cannot be mended together."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Generic, NamedTuple, TypeVar

from django.db import router
from django.db.models import DateTimeField, Field, IntegerField, Model, Q, QuerySet

from timeline.clocks import story_now
from timeline.conf import get_settings
from timeline.definition import Created, Definition
from timeline.dialects import target_of
from timeline.exceptions import WrongEntity
from timeline.features.machines.mirror import mirror_runs, shows_another
from timeline.features.machines.store import last_moved, runs_to_move
from timeline.models import EntityRef, Event, TimelineRun, model_of, ref_with
from timeline.models.entities import load_entities
from timeline.models.kin import kin_of
from timeline.operations.start import start_locked
from timeline.registry import registry
from timeline.store.database_errors import catching, is_usable
from timeline.store.locks import lock_batch, lock_entities
from timeline.store.poll_queries import AT_ONCE, polling
from timeline.store.run_insert import constantly

logger = logging.getLogger("timeline")

Item = TypeVar("Item")

RECENT: Final = timedelta(days=1)  # Code that saves an object it read long ago has read it on the same day.


class Swept(NamedTuple):
    """
    What a sweep did: runs and rows of entities checked; runs reconciled, as they had drifted; runs begun for entities that had
    none. If ``left``, there may be more: call again.
    """

    looked: int = 0
    mended: int = 0
    started: int = 0
    left: bool = False


class Taken(NamedTuple):
    """The next items of a part, the position after them (as plain data), and whether the round is over with them."""

    some: Sequence[Any]
    position: dict[str, Any]
    is_last: bool


class SweepPart(ABC, Generic[Item]):
    """
    What a sweep goes through to the end, again and again: ``name`` is the key of its row, ``most`` the items taken at a time.
    """

    name: str
    most: int = 500

    @abstractmethod
    def take(self, position: dict[str, Any], *, begins: bool, size: int, using: str) -> Taken:
        """Read the next items. ``position`` is empty the first time ever; ``begins``: whether a round begins."""

    @abstractmethod
    def mend(self, some: Sequence[Item], *, now: datetime, using: str) -> Swept:
        """Check the items, and mend those that are wrong."""


def each_if_not_all(items: Sequence[Item], act: Callable[[Sequence[Item]], int], *, using: str) -> int:
    """
    Do something with all items in one transaction that waits for no lock, or, if this fails, with each in its own. Gives the
    sum. What fails then is left for the next round, with a line in the log.
    """
    if not items:
        return 0
    caught: list[Exception] = []
    with catching(caught), polling(using, AT_ONCE):
        return act(items)
    if not is_usable(using):
        raise caught[0]
    if len(items) == 1:
        logger.warning("The sweep leaves %s for its next round: %s", items[0], caught[0])
        return 0
    return sum(each_if_not_all([item], act, using=using) for item in items)


def newcomers(using: str) -> Iterator[Newcomers]:
    """The parts for a database: one for each timeline, if new rows of its model can be recognized."""
    for definition in registry:
        model = model_of(definition.label) if Created() in definition.starts_on else None
        if model is not None and router.allow_migrate_model(using, model):
            column = order_of(model)
            if column is not None:
                yield Newcomers(definition, model, column)


def order_of(model: type[Model]) -> Field[Any, Any] | None:
    """The column that tells which rows are newer: a numeric primary key, or an indexed time of making. None: no column does."""
    if isinstance(target_of(model._meta.pk), IntegerField):
        return model._meta.pk
    first = {index.fields[0].lstrip("-") for index in model._meta.indexes if index.fields and not index.condition}
    for column in model._meta.local_concrete_fields:
        has_index = getattr(column, "db_index", False) or column.name in first
        if isinstance(column, DateTimeField) and column.auto_now_add and has_index:
            return column
    return None


class Newcomers(SweepPart[EntityRef]):
    """
    Rows of a model inserted after the first sweep that knew the timeline; older ones are never checked. A round begins where
    the round before the last ended, and goes to the newest row. So each row is checked twice, and one committed late is there
    the second time.
    """

    def __init__(self, definition: Definition, model: type[Model], column: Field[Any, Any]) -> None:
        self.name = definition.name
        self.definition = definition
        self.model = model
        self.column = column

    def take(self, position: dict[str, Any], *, begins: bool, size: int, using: str) -> Taken:
        """Read the next rows. The first time ever, only remember which row is newest."""
        rows: QuerySet[Model] = QuerySet(self.model, using=using)
        if not position:
            newest = self._newest(rows)
            return Taken([], {"before": newest, "top": newest}, is_last=True)
        if begins:
            position = {"at": position["before"], "before": position["top"], "top": self._newest(rows)}
        some = self._next(rows, position, size)
        refs = self._named([key for key, _value in some])
        if len(some) >= size:
            return Taken(refs, {**position, "at": self._as_data(some[-1][1])}, is_last=False)
        return Taken(refs, {"before": position["before"], "top": position["top"]}, is_last=True)

    def _named(self, keys: Iterable[Any]) -> list[EntityRef]:
        refs = []
        for key in keys:
            try:
                refs.append(ref_with(self.model, key))
            except WrongEntity as error:
                logger.warning("The sweep starts no run of %s: %s", self.name, error.in_english())
        return refs

    def _newest(self, rows: QuerySet[Model]) -> Any:
        last = rows.order_by(f"-{self.column.attname}").values_list(self.column.attname, flat=True).first()
        return self._as_data(last)

    def _next(self, rows: QuerySet[Model], position: dict[str, Any], size: int) -> list[tuple[Any, Any]]:
        name = self.column.attname
        at, top = (self.column.to_python(position[end]) for end in ("at", "top"))
        if top is None:
            return []
        rows = rows.filter(**{f"{name}__lte": top})
        later = rows if at is None else rows.filter(**{f"{name}__gt": at})
        pairs = later.order_by(name).values_list("pk", name)
        some = list(pairs[:size])
        if len(some) == size and not self.column.primary_key:  # Other rows may have the same time as the last row.
            some = [pair for pair in some if pair[1] != some[-1][1]] + list(pairs.filter(**{name: some[-1][1]}))
        return some

    def _as_data(self, value: Any) -> Any:
        return value.isoformat() if isinstance(value, datetime) else value

    def mend(self, some: Sequence[EntityRef], *, now: datetime, using: str) -> Swept:
        """Start a run for entities that have none, unless ``TIMELINE["AUTOSTART"]`` is off."""
        started = 0
        if get_settings().AUTOSTART:
            act = partial(self._start, now=now, using=using)
            started = each_if_not_all(self._without_run(some, using), act, using=using)
        if started:
            logger.info("Runs of %s that the sweep started, since no signal had: %d.", self.name, started)
        return Swept(looked=len(some), started=started, left=True)

    def _without_run(self, refs: Sequence[EntityRef], using: str) -> list[EntityRef]:
        """The entities that never had a run of the timeline, and for which none of its exits is recorded."""
        ids = [ref.id for ref in refs]
        label = self.definition.label
        runs = TimelineRun.objects.using(using).filter(entity_label=label, entity_id__in=ids, timeline=self.name)
        known = set(runs.values_list("entity_id", flat=True)) if ids else set()
        if ids and self.definition.exits:
            known |= {ref.id for ref in self._having_left(refs, using)}
        return [ref for ref in refs if ref.id not in known]

    def _having_left(self, refs: Sequence[EntityRef], using: str) -> list[EntityRef]:
        """The entities for which an exit is recorded, under any of their names."""
        kin = kin_of(refs, using=using)
        names = {name for several in kin.values() for name in several}
        exits = Event.objects.using(using).filter(
            entity_label__in=sorted({name.label for name in names}),
            entity_id__in=sorted({name.id for name in names}),
            name__in=sorted(self.definition.exits),
        )
        left = set(exits.values_list("entity_label", "entity_id"))
        return [ref for ref, several in kin.items() if not left.isdisjoint(several)]

    def _start(self, refs: Sequence[EntityRef], *, now: datetime, using: str) -> int:
        read = bool(self.definition.followed_fields)
        entities = lock_batch(refs, gone=True, read=read, using=using)
        still = set(self._without_run(list(entities), using))
        there = {ref: entity for ref, entity in entities.items() if ref in still}
        return len(start_locked([self.definition], there, begins=constantly(now), now=now, using=using))


class EndedRuns(SweepPart[TimelineRun]):
    """Runs of machines that show their states, and that ended lately. Open runs are checked with all other open runs."""

    name = "machines: ended"  # No timeline can have this name.

    def __init__(self, machines: Sequence[str]) -> None:
        self.machines = machines

    def take(self, position: dict[str, Any], *, begins: bool, size: int, using: str) -> Taken:
        """Read the next runs, in the order in which they ended."""
        runs = TimelineRun.objects.using(using).filter(timeline__in=self.machines, pruned=False, state__gt="", key="")
        runs = runs.filter(ended_at__gte=story_now(using) - RECENT)
        if not begins:
            at = datetime.fromisoformat(position["at"])
            runs = runs.filter(ended_at__gte=at).filter(Q(ended_at__gt=at) | Q(pk__gt=position["id"]))
        some = list(runs.order_by("ended_at", "pk")[:size])
        last = some[-1] if some else None
        stands = {"at": last.ended_at.isoformat(), "id": str(last.pk)} if last and last.ended_at else position
        return Taken(some, stands, is_last=len(some) < size)

    def mend(self, some: Sequence[TimelineRun], *, now: datetime, using: str) -> Swept:  # noqa: ARG002 (no time in it)
        """Write the states of runs whose entities show another state."""
        entities = load_entities((run.entity_ref for run in some), using=using)
        wrong = [
            run
            for run in some
            if (definition := registry.about(run.timeline, run.entity_label)) is not None
            and shows_another(run, definition, entities.get(run.entity_ref))
        ]
        mended = each_if_not_all(wrong, partial(_mirror, using=using), using=using)
        if mended:
            logger.info("States of machines that have ended, written anew by the sweep: %d.", mended)
        return Swept(looked=len(some), mended=mended, left=True)


def _mirror(runs: Sequence[TimelineRun], *, using: str) -> int:
    """Write the state of the last run that ended, for entities without an open run. An open run shows its own state."""
    refs = {run.entity_ref for run in runs}
    machines: dict[str, str | None] = dict.fromkeys({run.timeline for run in runs}, "")
    lock_entities(refs, using=using, fresh=True)
    running = {(run.timeline, run.entity_ref) for run in runs_to_move(refs, machines, using=using)}
    last = last_moved(refs, machines, using=using)
    return mirror_runs([run for run in last if (run.timeline, run.entity_ref) not in running], using=using)


def ended_parts() -> Iterator[EndedRuns]:
    """The part of the sweep that checks ended runs; none if no machine shows its state."""
    if machines := sorted(known.name for known in registry.machines() if known.mirror):
        yield EndedRuns(machines)
