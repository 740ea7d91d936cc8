"""
What the package tells, taken down: in the transaction of a move or an ending, a delivery for each endpoint that wants it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from django.db import connections, router, transaction
from django.db.models import Case, F, Value, When
from django.db.models.functions import Concat

from timeline.clocks import story_now
from timeline.models import EntityRef
from timeline.models.kin import about_entity
from timeline.signals import Ending, Entered, Trouble
from timeline.webhooks.bodies import Fact, fact_of_ending, fact_of_entry
from timeline.webhooks.knowing import forget, is_any
from timeline.webhooks.locking import lock_deliveries, lock_endpoints, lock_keys
from timeline.webhooks.models import Attempt, Delivery, State
from timeline.webhooks.pruning import prune_deliveries
from timeline.webhooks.signing_on import find_trouble
from timeline.webhooks.writing import write_deliveries


def on_entered(*, using: str, entries: Sequence[Entered], **_extra: Any) -> None:
    """Runs of machines came into states: write deliveries of what their machines tell. No statement if that is nothing."""
    facts = [fact for entry in entries if (fact := fact_of_entry(entry)) is not None]
    if facts and is_any(using=using):
        write_deliveries(facts, now=entries[0].at, using=using)


def on_ending(*, using: str, endings: Sequence[Ending], **_extra: Any) -> None:
    """Tasks end: write deliveries of it. No statement if nobody wants any."""
    if not endings or not is_any(using=using, of_tasks=True):
        return
    now = story_now(using)
    facts: list[Fact] = [fact for ending in endings if (fact := fact_of_ending(ending, now)) is not None]
    if facts:
        write_deliveries(facts, now=now, using=using)


def on_erased(*, entity_ref: EntityRef, done: Any, using: str, **_extra: Any) -> None:
    """An entity was erased: blank deliveries about it that have ended, and what was answered. They cannot be replayed then."""
    ended = Delivery.objects.using(using).filter(about_entity(entity_ref, using=using)).exclude(state=State.WAITING)
    lock_endpoints(ended.values_list("endpoint", flat=True).distinct(), using=using)
    lock_deliveries(ended)
    said = Attempt.objects.using(using).filter(delivery__in=ended).exclude(answer="", error="")
    done.count(Attempt, said.update(answer="", error=""))
    done.count(Delivery, ended.exclude(body="", error="").update(body="", error=""))


def on_relabelled(*, old: str, new: str, using: str, **_extra: Any) -> None:
    """The model of entities has another label: deliveries follow, where their table is. Bodies stay as they were told."""
    if Delivery._meta.db_table not in connections[using].introspection.table_names():
        return
    rows = Delivery.objects.using(using).filter(entity_label=old)
    lock_keys(rows.values_list("endpoint", flat=True).distinct(), using=using)
    left = rows.order_by("pk")
    before, after = (Concat(Value(f"{label}:"), F("entity_id")) for label in (old, new))
    order_key = Case(When(order_key=before, then=after), default=F("order_key"))
    while keys := list(left.select_for_update(no_key=True).values_list("pk", flat=True)[:_BATCH]):
        Delivery.objects.using(using).filter(pk__in=keys).update(entity_label=new, order_key=order_key)
        left = left.filter(pk__gt=keys[-1])


_BATCH: Final = 1000


def on_endpoint(*, using: str, **_extra: Any) -> None:
    """An endpoint was written or deleted: ask anew what there are, now and once it is committed."""
    forget(using)
    transaction.on_commit(lambda: forget(using), using=using)


def on_diagnosing(*, using: str, now: datetime, **_extra: Any) -> Trouble | None:
    """Somebody asks how a database is doing: say if nobody sends what waits, where the tables are."""
    return find_trouble(now=now, using=using) if router.allow_migrate_model(using, Delivery) else None


def on_pruning(*, using: str, ended_before: datetime, **_extra: Any) -> int:
    """What ended long ago is being deleted: deliveries too, where their table is."""
    if not router.allow_migrate_model(using, Delivery):
        return 0
    return prune_deliveries(ended_before=ended_before, using=using)
