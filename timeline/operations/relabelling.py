"""Relabel: rows follow a model that a migration renamed or moved to another app."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from django.db import connections
from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from timeline.definition.waiting import PREFIX, renamed
from timeline.exceptions import InvalidInput, LabelsCollide
from timeline.models import (
    BulkAction,
    Event,
    Hold,
    ScheduledTask,
    Scope,
    StepKind,
    StepRecord,
    TimelineRun,
    Wake,
    model_of,
)
from timeline.models.entities import MAX_LABEL
from timeline.payloads import check_text
from timeline.signals import relabelled
from timeline.store.isolating import atomic

BATCH: Final = 1000


class Relabelled(NamedTuple):
    """How many rows have another label now."""

    events: int
    runs: int
    tasks: int


def relabel(*, old: str, new: str, using: str) -> Relabelled:
    """
    Let all rows that name entities by the old label of their model name them by the new one.

    All in one transaction, because an entity whose run has one label and whose tasks have the other has no proper timeline,
    and because it then stands or falls with the migration that calls it. Each statement changes at most 1,000 rows. Only
    columns of the first migration are used, so that it can be called from a migration whatever comes later. Bulk actions that
    are under way, holds, waits and webhooks follow, where they are.

    Args:
        old: ``app.model`` as rows have it; the model may be gone.
        new: Label of an installed model, with the same keys.
        using: Database alias.

    Returns:
        The counts; all 0 if no row has the old label.

    Raises:
        InvalidInput: for a label that is empty, or the same as the other; for a new one of no installed model.
        LabelsCollide: if rows of both labels would be the same row: open runs, keyed events, ad hoc tasks. Nothing is
            changed in any of these cases.
    """
    old, new = _checked(old, new)
    with atomic(using=using):
        tables = connections[using].introspection.table_names()
        if BulkAction._meta.db_table in tables:  # First, as for all who have locked one: its batch is waited for.
            _rename_in_bulk_actions(old, new, using)
        events, runs, tasks = (
            Event.objects.using(using).all(),
            TimelineRun.objects.using(using).all(),
            ScheduledTask.objects.using(using).all(),
        )
        for what, rows, names in (
            (_("open runs"), runs.open(), ("timeline", "key")),
            (pgettext_lazy("timeline", "events"), events.exclude(key=""), ("name", "key")),
            (_("ad hoc tasks"), tasks.filter(run__isnull=True), ("task_key", "occurrence")),
        ):
            if ids := _doubled(rows, names, old, new):
                raise LabelsCollide(old, new, what, ids)
        if Hold._meta.db_table in tables:  # Where ``migrate`` has not made the table, nothing is on hold.
            _rename_in_holds(old, new, using)
        if Wake._meta.db_table in tables:  # Of the last migration that has to do with waits.
            _rename_in_waits(old, new, using)
        done = Relabelled(*(_rename(rows, old, new) for rows in (events, runs, tasks)))
        relabelled.send(sender=Event, old=old, new=new, using=using)  # Last: senders wait from then on.
        return done


def _checked(old: str, new: str) -> tuple[str, str]:
    check_text("old", old, MAX_LABEL, least=1)
    check_text("new", new, MAX_LABEL, least=1)
    model = model_of(new)
    if model is None or model._meta.proxy:
        problem = _("%(label)r is no installed model, or a proxy.")
        raise InvalidInput("new", problem, _("Give it as app_label.model."), label=new)
    if old.lower() == new.lower():
        remedy = _("Give the label that the model has now.")
        raise InvalidInput("new", _("%(label)r is the old label."), remedy, label=new)
    return old.lower(), new.lower()


def _doubled(rows: QuerySet[Any], names: tuple[str, ...], old: str, new: str) -> list[str]:
    """Keys, five at most, of entities that have rows of the same names under both labels."""
    same = {name: OuterRef(name) for name in ("entity_id", *names)}
    double = rows.filter(Exists(rows.filter(entity_label=new, **same)), entity_label=old)
    return list(double.order_by("entity_id").values_list("entity_id", flat=True).distinct()[:5])


def _rename_in_bulk_actions(old: str, new: str, using: str) -> None:
    """Let what somebody wants to be done with all tasks of this kind be done with them by their new name."""
    rows = BulkAction.objects.using(using).open().filter(filters__kind=old).order_by("pk")
    for pk, filters in list(rows.values_list("pk", "filters")):
        rows.filter(pk=pk).update(filters=filters | {"kind": new})


def _rename_in_holds(old: str, new: str, using: str) -> None:
    """Let what is on hold stay so, by its new name."""
    rows = Hold.objects.using(using).filter(scope=Scope.ENTITY)
    for pk, names, own in list(rows.values_list("pk", "names", "entity_label")):
        renamed = [[new if label == old else label, key] for label, key in names]
        if renamed != names:
            rows.filter(pk=pk).update(names=renamed, entity_label=new if own == old else own)


def _rename_in_waits(old: str, new: str, using: str) -> None:
    """Let what waits for events of such an entity be waked by them, by its new name, and find them."""
    tasks, records = ScheduledTask.objects.using(using).all(), StepRecord.objects.using(using).all()
    _rename(tasks.filter(awaits__gt=""), old, new, column="awaits_label")
    _rename(Wake.objects.using(using).all(), old, new)
    waits: Any = records.filter(kind=StepKind.WAIT, place__of__0=old).values_list("pk", "place")
    for pk, place in list(waits):
        records.filter(pk=pk).update(place=place | {"of": [new, place["of"][1]]})
    # An answer is found by its name, which says whose event it was.
    named = records.filter(name__startswith=PREFIX, name__contains=f" of {old} ")
    for pk, name in list(named.values_list("pk", "name")):
        records.filter(pk=pk).update(name=renamed(name, old, new))


def _rename(rows: QuerySet[Any], old: str, new: str, *, column: str = "entity_label") -> int:
    """Walk along the primary key, so that no statement looks again at what those before it changed."""
    left, count = rows.filter(**{column: old}).order_by("pk"), 0
    while ids := list(left.values_list("pk", flat=True)[:BATCH]):
        count += rows.filter(pk__in=ids).update(**{column: new})
        left = left.filter(pk__gt=ids[-1])
    return count
