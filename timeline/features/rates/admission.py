"""A rate in an attempt: it is counted before its handler is entered, or put off; and a handler brakes its whole key."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS

from timeline.clocks import story_now
from timeline.engine.attempts import Attempt
from timeline.engine.failures import next_opening, rested
from timeline.exceptions import RateLimited, Rest
from timeline.features.rates.declaration import Allowance, Rate, rate_of
from timeline.features.rates.sentences import BRAKED, BUSY, USED_UP
from timeline.features.rates.store import BUSY_FOR, Asked, admit, slow_down
from timeline.lifecycle import ReasonCode
from timeline.models import LogEntry
from timeline.store.database_errors import catching, drop_if_lost
from timeline.store.transition import Write

logger = logging.getLogger("timeline")

TIMES: Final = "rate_limited"  # The log's key for how often the handler of a task has braked its rate.
MOST_TIMES: Final = 100  # So often it counts as no failure. Later ones do, so that what never ends is seen.
# Beside the columns of a task: when its attempt was counted, and how often it was entered.
_COUNTED: Final = "rate_counted"

_KEY: Final = "rate_key"  # Beside them, too: with what it was counted. The handler may change the field that decides.


def held_to_rate(attempts: Sequence[Attempt], *, now: datetime, using: str) -> dict[UUID, Rest]:
    """
    Attempts that must not begin now, each with when it looks again. The others are counted, and that is committed. One that was
    counted, and has waited since without its handler being entered, is counted anew, and not twice.
    """
    shared: dict[str, list[tuple[Attempt, Rate, Asked]]] = defaultdict(list)
    several: dict[str, tuple[Allowance, list[Asked]]] = {}
    for attempt in attempts:
        rate = rate_of(attempt.declared)
        allowance = None if rate is None or attempt.definition.shadow else rate.read
        if rate is None or allowance is None:
            continue
        key, (counted, undone) = key_of(attempt, rate), vars(attempt.task).get(_COUNTED, (0, 0))
        asked = Asked(attempt.task.attempt > 1, counted if undone == attempt.undone else 0)
        shared[key].append((attempt, rate, asked))
        several.setdefault(key, (allowance, []))[1].append(asked)
    refused: dict[UUID, Rest] = {}
    busy = admit(several, now=now, using=using) if several else ()
    for key, those in shared.items():
        for attempt, rate, asked in those:
            vars(attempt.task)[_COUNTED] = (asked.counted, attempt.undone)
            vars(attempt.task)[_KEY] = key
            name = rate.name_of(attempt.task.task_key)
            if key in busy:
                refused[attempt.task.id] = Rest(BUSY(key=name), due_at=next_opening(attempt, now + BUSY_FOR))
            elif asked.due_at is not None:
                due_at = next_opening(attempt, asked.due_at)
                refused[attempt.task.id] = _put_off(name, rate, asked, due_at=due_at)
    return refused


def _put_off(name: str, rate: Rate, asked: Asked, *, due_at: datetime) -> Rest:
    reason = (
        USED_UP(key=name, rate=rate.text) if asked.braked_until is None else BRAKED(key=name, at=asked.braked_until)
    )
    return Rest(reason, due_at=due_at)


def key_of(attempt: Attempt, rate: Rate) -> str:
    """What an attempt shares its rate with. Its entity was read by the last look."""
    entity: Any = attempt.entity
    field = entity._meta.get_field(rate.by) if rate.by and entity is not None else None
    return rate.key_of(attempt.task.task_key, getattr(entity, field.attname, None) if field is not None else None)


def slowed(attempt: Attempt, error: BaseException, write: Write, *, together: bool) -> Write:  # noqa: ARG001 (as all are called)
    """
    The outcome of a handler that raised ``RateLimited``: its whole key is braked, and the task looks again when that is over,
    which is no failure the first hundred times.
    """
    rate = rate_of(attempt.declared)
    if rate is None or not isinstance(error, RateLimited):
        return write
    using = attempt.task._state.db or DEFAULT_DB_ALIAS
    until, times, caught = attempt.now + error.delay, 1, list[Exception]()
    with catching(caught):
        now = story_now(using)
        until = now + error.delay
        times += _times_before(attempt, using)
        key = vars(attempt.task).get(_KEY) or key_of(attempt, rate)
        if not slow_down(key, until=until, now=now, using=using):
            logger.warning("The rate of %s is locked by somebody, and is not braked until %s.", attempt.task, until)
    if caught:  # What others of its group have done must be recorded all the same.
        logger.error("The rate of %s is not braked until %s: %s", attempt.task, until, caught[0])
        drop_if_lost(caught[0], using)
    if write.reason is None or write.reason.code != ReasonCode.RETRY_AFTER:  # A step is in doubt: that stands.
        return write
    if times > MOST_TIMES:
        write.evidence[TIMES] = times
        return write
    reason = BRAKED(key=rate.name_of(attempt.task.task_key), at=until)
    put_off = rested(attempt, reason)
    return replace(put_off, scheduled_at=next_opening(attempt, until), evidence={TIMES: times})


def _times_before(attempt: Attempt, using: str) -> int:
    """How often its handler has braked the rate before."""
    if attempt.task.attempt == 1:
        return 0
    told = LogEntry.objects.using(using).filter(task=attempt.task.id, **{f"detail__{TIMES}__isnull": False})
    return int(told.order_by("-seq").values_list(f"detail__{TIMES}", flat=True).first() or 0)
