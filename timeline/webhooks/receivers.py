"""What the package tells, taken down: in the transaction of a move or an ending, a delivery for each endpoint that wants it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from time import monotonic
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from django.db import connections, router, transaction
from django.db.models import Case, F, Value, When
from django.db.models.functions import Concat

from timeline.clocks import story_now
from timeline.models import EntityRef
from timeline.models.kin import about_entity
from timeline.signals import Ending, Entered, Trouble
from timeline.webhooks.conf import get_settings
from timeline.webhooks.disabling import lock_deliveries, lock_endpoints, lock_keys
from timeline.webhooks.facts import Fact, fact_of_ending, fact_of_entry, write_deliveries
from timeline.webhooks.models import Attempt, Delivery, Endpoint, State
from timeline.webhooks.upkeep import find_trouble, prune_deliveries

_known: dict[str, _Known] = {}
_changing: WeakKeyDictionary[Any, Any] = (
    WeakKeyDictionary()
)  # Connection → the outermost block that has changed endpoints.
_BATCH: Final = 1000


class _Known(NamedTuple):
    any: bool
    of_tasks: bool
    until: float


def is_any(*, using: str, of_tasks: bool = False) -> bool:
    """Whether there is an endpoint that is enabled, and, with ``of_tasks``, wants to be told of tasks."""
    if _is_changing(using):
        known = _ask(using)
    elif (found := _known.get(using)) is not None and monotonic() < found.until:
        known = found
    else:
        known = _known[using] = _ask(using)
    return known.of_tasks if of_tasks else known.any


def forget(using: str) -> None:
    """Ask anew the next time; in a transaction, each time until it has ended."""
    _known.pop(using, None)
    if (block := _outermost(using)) is not None:
        _changing[connections[using]] = block


def assume_none(using: str) -> None:
    """Take it that there is none, as a process does that has asked. For tests that count statements."""
    _known[using] = _Known(False, False, float("inf"))


def _is_changing(using: str) -> bool:
    changed = _changing.get(connections[using])
    if changed is not None and changed is not _outermost(using):
        del _changing[connections[using]]
        return False
    return changed is not None


def _outermost(using: str) -> Any:
    """The block that the open transaction ends with, but for that of a test; None: there is none."""
    connection: Any = connections[using]
    return next((block for block in connection.atomic_blocks if not block._from_testcase), None)


def _ask(using: str) -> _Known:
    if not router.allow_migrate_model(using, Endpoint):  # A database of the host's that has no such table.
        return _Known(False, False, float("inf"))
    wanted = list(Endpoint.objects.using(using).filter(disabled_at=None).values_list("topics", flat=True))
    of_tasks = any(topic.startswith("task.") for topics in wanted for topic in topics)
    return _Known(bool(wanted), of_tasks, monotonic() + get_settings().LOOK_AGAIN.total_seconds())


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
