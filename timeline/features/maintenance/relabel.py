"""Relabel: change the rows about a model that a migration renamed or moved to another app."""

from __future__ import annotations

from functools import partial
from typing import Any, Final, NamedTuple

from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from timeline.exceptions import InvalidInput, LabelsCollide
from timeline.hooks import hooks
from timeline.models import Event, ScheduledTask, TimelineRun, model_of
from timeline.models.entities import MAX_LABEL
from timeline.payloads import check_text
from timeline.signals import relabelled
from timeline.store.transactions import atomic

BATCH: Final = 1000


class Relabelled(NamedTuple):
    """How many rows were given the new label."""

    events: int
    runs: int
    tasks: int


def relabel(*, old: str, new: str, using: str) -> Relabelled:
    """
    Change all rows that name entities by the old label of their model to the new label.

    All is one transaction. Otherwise an entity might have a run with one label and tasks with the other. Also, if the migration
    that calls this fails, everything is undone. Each statement changes at most 1,000 rows. It needs only columns of the first
    migration, so it can be called from a migration whatever comes later. Open bulk actions, holds, waits and webhooks are
    changed, too, if their tables exist.

    Args:
        old: The label that rows have, as ``app.model``; the model may be gone.
        new: The label of an installed model with the same primary keys.

    Returns:
        The counts; all 0 if no row has the old label.

    Raises:
        InvalidInput: if a label is empty, if both are the same, or if the new one is not of an installed model.
        LabelsCollide: if rows with both labels would become the same row: open runs, keyed events, or ad hoc tasks. Nothing is
            changed in any of these cases.
    """
    old, new = _checked(old, new)
    with atomic(using=using):
        # First, by the lock order: batches of bulk actions and of releases are waited for.
        for rename in hooks().relabels:
            rename(old, new, using=using)
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
        for rename in hooks().relabels_later:
            rename(old, new, change=partial(_rename, old=old, new=new), using=using)
        done = Relabelled(*(_rename(rows, old=old, new=new) for rows in (events, runs, tasks)))
        relabelled.send(sender=Event, old=old, new=new, using=using)  # Last: from then on, senders of webhooks wait.
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
    """Keys, five at most, of entities that have rows under both labels with the same values of ``names``."""
    same = {name: OuterRef(name) for name in ("entity_id", *names)}
    double = rows.filter(Exists(rows.filter(entity_label=new, **same)), entity_label=old)
    return list(double.order_by("entity_id").values_list("entity_id", flat=True).distinct()[:5])


def _rename(rows: QuerySet[Any], *, old: str, new: str, column: str = "entity_label") -> int:
    """Change rows in the order of the primary key, so that no statement reads rows that were changed before."""
    left, count = rows.filter(**{column: old}).order_by("pk"), 0
    while ids := list(left.values_list("pk", flat=True)[:BATCH]):
        count += rows.filter(pk__in=ids).update(**{column: new})
        left = left.filter(pk__gt=ids[-1])
    return count
