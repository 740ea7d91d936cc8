"""Lift: let tasks go on whose key a handler has braked, before the time is over that it asked for."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext_lazy as _

from timeline.definition.names import MAX_KEY
from timeline.exceptions import InvalidInput, TimelineError
from timeline.features.rates.declaration import rate_of
from timeline.features.rates.sentences import BRAKED
from timeline.features.rates.store import braked, lift
from timeline.lifecycle import Reason, State, Trigger
from timeline.models import ScheduledTask
from timeline.models.entities import load_entities
from timeline.models.facts import zone_of
from timeline.payloads import check_text
from timeline.registry import registry
from timeline.store.signal_dispatch import announce
from timeline.store.transactions import atomic
from timeline.store.transition import Write, apply
from timeline.suggestions import did_you_mean

if TYPE_CHECKING:
    from django.db.models import Model

logger = logging.getLogger("timeline")

BATCH: Final = 500  # Tasks of one transaction.


def lift_brake(*, key: str, value: object = None, reason: Reason, now: datetime, using: str) -> int:
    """
    Lift the brake of a key, and let the tasks that rest because of it look again at once. The rate still holds for them.

    What a handler asks for afterwards brakes the key again.

    Args:
        key: The ``key`` of the rate; of a rate without one, the key of the task.
        value: Of a rate with ``by``: lift only the brake of this value of the field. None: those of all values.
        reason: Why, and who decided; it stands in the log of each task that looks again.

    Returns:
        How many tasks look again at once. One whose window is closed keeps its time.

    Raises:
        InvalidInput: naming ``key``, if nothing of it is braked, or somebody else has locked it; or ``reason``, if it is empty.
            Nothing is changed then.
    """
    check_text("key", key, MAX_KEY)
    if not reason.text.strip():
        raise InvalidInput("reason", _("is empty."), _("Say why the brake is lifted."))
    names = {
        rate.name_of(task_key): bool(rate.by)
        for task_key in registry.task_keys()
        if (rate := rate_of(registry.task(task_key)[1])) is not None
    }
    found = braked(key, value, has_values=names.get(key, False), now=now, using=using)
    if not found:
        remedy = _("A key is braked when a handler raises RateLimited.")
        meant = "" if key in names else did_you_mean(key, names)
        raise InvalidInput("key", _("%(key)r is not braked."), meant or remedy, key=key)
    if not lift(found, now=now, using=using):
        raise InvalidInput("key", _("somebody has locked the rate of %(key)r."), _("Try it again."), key=key)
    woken = _wake(key, reason, now=now, using=using)
    said = "The brake of the rate %r was lifted by %s (%s): %d tasks look again."
    logger.info(said, key, reason.actor or "nobody named", reason.text, woken)
    return woken


def _wake(name: str, reason: Reason, *, now: datetime, using: str) -> int:
    """Make tasks due that rest because of a brake, in batches; rows tell it by the text of their reason."""
    told = BRAKED.english.partition("%(at)s")[0] % {"key": name}
    resting = ScheduledTask.objects.using(using).filter(
        state=State.RETRYABLE, reason_code=BRAKED.code, actor="", reason__startswith=told
    )
    woken, ids = 0, list(resting.order_by("scheduled_at", "pk").values_list("pk", flat=True))
    for first in range(0, len(ids), BATCH):
        with atomic(using=using):
            tasks = _open(
                list(resting.filter(pk__in=ids[first : first + BATCH]).by_id().locked()), now=now, using=using
            )
            writes = [Write(task=task, triggers=(Trigger.DUE,), scheduled_at=now, reason=reason) for task in tasks]
            woken += len(apply(writes, now=now, using=using)) if writes else 0
            announce(using=using)
    return woken


def _open(tasks: Sequence[ScheduledTask], *, now: datetime, using: str) -> list[ScheduledTask]:
    """Those that may run now, by their windows."""
    there = load_entities({task.entity_ref for task in tasks if task.entity_ref.label}, using=using)
    return [task for task in tasks if _is_open(task, there.get(task.entity_ref), now)]


def _is_open(task: ScheduledTask, entity: Model | None, now: datetime) -> bool:
    try:
        definition, declared = registry.task(task.task_key)
        hours = declared.options.window
        return hours is None or hours.next_open(now, zone_of(definition, entity)) <= now
    except TimelineError:  # It has no code here, or its zone cannot be read: it looks again at its time.
        return False
