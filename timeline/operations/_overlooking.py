"""Overlooked: new entities that have no run of a timeline that starts with each new entity."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from django.db import router
from django.db.models import DateTimeField, Field, IntegerField, Model, QuerySet

from timeline.conf import get_settings
from timeline.definition import Created, Definition
from timeline.exceptions import WrongEntity
from timeline.models import EntityRef, Event, TimelineRun, model_of, ref_with
from timeline.models.among import target_of
from timeline.models.kin import kin_of
from timeline.operations._parting import Part, Swept, Taken, each_if_not_all
from timeline.operations.starting import start_locked
from timeline.registry import registry
from timeline.store.beginning import constantly
from timeline.store.locking import lock_batch

logger = logging.getLogger("timeline")


def newcomers(using: str) -> Iterator[Newcomers]:
    """The parts for a database: one for each timeline, if new rows of its model can be recognized."""
    for definition in registry:
        model = model_of(definition.label) if Created() in definition.starts_on else None
        if model is not None and router.allow_migrate_model(using, model):
            column = order_of(model)
            if column is not None:
                yield Newcomers(definition, model, column)


def order_of(model: type[Model]) -> Field[Any, Any] | None:
    """
    Find the column that tells which rows of a model are newer than others: a primary key that is a number, or a datetime with
    an index that is set when a row is made. None: there is no such column.
    """
    if isinstance(target_of(model._meta.pk), IntegerField):
        return model._meta.pk
    first = {index.fields[0].lstrip("-") for index in model._meta.indexes if index.fields and not index.condition}
    for column in model._meta.local_concrete_fields:
        has_index = getattr(column, "db_index", False) or column.name in first
        if isinstance(column, DateTimeField) and column.auto_now_add and has_index:
            return column
    return None


class Newcomers(Part[EntityRef]):
    """
    Rows of a model that were inserted after the first sweep that knew the timeline. Older rows are never checked.

    A round begins where the round before the last ended, and goes to the row that is newest now. So each row is checked twice,
    and a row that was committed late is there the second time.

    Args:
        definition: A timeline that starts with each new entity.
        model: The model of the entities.
        column: The column by which the rows are ordered.
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
            logger.info("The sweep started %d runs of %s that no signal had started.", started, self.name)
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
