"""Relabel: rows follow a model that a migration renamed or moved to another app."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from timeline.exceptions import InvalidInput, LabelsCollide
from timeline.models import Event, ScheduledTask, TimelineRun, model_of
from timeline.models.entities import MAX_LABEL
from timeline.payloads import check_text
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
    columns of the first migration are used, so that it can be called from a migration whatever comes later.

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
        return Relabelled(*(_rename(rows, old, new) for rows in (events, runs, tasks)))


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


def _rename(rows: QuerySet[Any], old: str, new: str) -> int:
    """Walk along the primary key, so that no statement looks again at what those before it changed."""
    left, count = rows.filter(entity_label=old).order_by("pk"), 0
    while ids := list(left.values_list("pk", flat=True)[:BATCH]):
        count += rows.filter(pk__in=ids).update(entity_label=new)
        left = left.filter(pk__gt=ids[-1])
    return count
