"""Unique jobs: what makes two the same, and what becomes of the second. Strong: a row for each key is locked meanwhile."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from timeline.lifecycle import Reason, ReasonCode, Trigger
from timeline.models import ScheduledTask
from timeline.ojs.errors import Duplicate, Invalid
from timeline.ojs.models import UniqueKey
from timeline.ojs.values import an_array, an_object, duration, text
from timeline.ojs.wire import state_of
from timeline.store.transition import Write, apply

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet

KEYS: Final = ("type", "queue", "args", "meta")
OPEN: Final = ("available", "active", "scheduled", "retryable", "pending")
STATES: Final = (*OPEN, "completed", "cancelled", "discarded")
REJECT, IGNORE, REPLACE, KEEP_TIME = "reject", "ignore", "replace", "replace_except_schedule"
CONFLICTS: Final = (REJECT, IGNORE, REPLACE, KEEP_TIME)
_REPLACED: Final = Reason(ReasonCode.SUPERSEDED, "Another job has taken its place.")


@dataclass(frozen=True, slots=True)
class Unique:
    """
    That a job is to be the only one of its kind.

    Args:
        key: Equal for jobs that are the same.
        states: Of the other job, in which it counts; ``period``: for so long after it was made. None: for ever.
    """

    key: str
    states: frozenset[str]
    period: timedelta | None
    on_conflict: str


def read_unique(given: object, about: Mapping[str, Any], field: str) -> Unique | None:
    """Read what a job says of that; ``about``: its type, queue, args and meta. Raises ``Invalid``, naming the field."""
    if given is None:
        return None
    found = an_object(field, given)
    keys = _names(f"{field}.keys", found.get("keys", ["type"]), KEYS)
    states = _names(f"{field}.states", found.get("states", list(OPEN)), STATES)
    on_conflict = found.get("on_conflict", REJECT)
    if on_conflict not in CONFLICTS:
        raise Invalid(f"{field}.on_conflict", f"has to be one of {', '.join(CONFLICTS)}.")
    period = None if found.get("period") is None else duration(f"{field}.period", found["period"])
    parts = {name: about[name] for name in {"type", *keys} - {"args", "meta"}}
    if "args" in keys:
        parts["args"] = _some_args(about["args"], found.get("args_keys"), f"{field}.args_keys")
    if "meta" in keys:
        wanted = _names(f"{field}.meta_keys", found.get("meta_keys") or [])
        if not wanted:
            raise Invalid(f"{field}.meta_keys", "is missing: it says which keys of meta count.", validation="required")
        parts["meta"] = {name: about["meta"].get(name) for name in wanted}
    canonical = unicodedata.normalize(
        "NFC", json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    )
    return Unique(hashlib.sha256(canonical.encode()).hexdigest(), frozenset(states), period, on_conflict)


def _names(field: str, given: object, known: Sequence[str] = ()) -> list[str]:
    names = [text(f"{field}[{place}]", name, 100) for place, name in enumerate(an_array(field, given))]
    for place, name in enumerate(names):
        if known and name not in known:
            raise Invalid(f"{field}[{place}]", f"has to be one of {', '.join(known)}.")
    return names


def _some_args(args: list[Any], given: object, field: str) -> object:
    """All arguments; or some keys of them, of whichever argument is an object that has the key."""
    if given is None:
        return args
    found = {}
    for place, name in enumerate(_names(field, given)):
        having = [each for each in args if isinstance(each, dict) and name in each]
        if not having:
            raise Invalid(f"{field}[{place}]", "is a key of no argument.")
        found[name] = [each[name] for each in having]
    return found


def resolve(
    rows: Sequence[ScheduledTask],
    asked: Mapping[UUID, Unique],
    latest: Any,
    seen: ScheduledTaskQuerySet | None = None,
    *,
    now: datetime,
    using: str,
) -> dict[UUID, ScheduledTask]:
    """
    See to new rows that want to be the only ones, in the caller's transaction: a fixed number of statements.

    Args:
        asked: Id of a row → what its job says. Others want nothing.
        latest: Finds jobs by their ids.
        seen: The jobs that whoever asks may know of; None: all. Another one refuses theirs, is not told and not replaced.

    Returns:
        Id of a row that is not to be made → the job that is there in its place.

    Raises:
        Duplicate: if there is one, and the job says ``reject``; or if two that are the same come together.
    """
    if not asked:
        return {}
    mine = {
        asked[row.pk].key: row for row in reversed(rows) if row.pk in asked
    }  # The first of those that are the same.
    before = _locked(sorted(mine), using)
    there = latest([job for job in before.values() if job is not None], using=using)
    hidden = _hidden(there.values(), seen)
    instead: dict[UUID, ScheduledTask] = {}
    replaced: list[ScheduledTask] = []
    for row in rows:
        if row.pk not in asked:
            continue
        unique = asked[row.pk]
        other = there.get(before[unique.key]) if mine[unique.key] is row else mine[unique.key]
        if other is None or (other is not mine[unique.key] and not _counts(other, unique, now)):
            continue
        _check_known(other, hidden)
        if unique.on_conflict == IGNORE:
            instead[row.pk] = instead.get(other.pk, other)
        elif unique.on_conflict == REJECT or other is mine[unique.key]:
            raise Duplicate("There is such a job already.", existing_job_id=other.occurrence)
        else:
            replaced.append(other)
            if unique.on_conflict == KEEP_TIME and state_of(other, now) == "scheduled":
                row.nominal_at, row.scheduled_at, row.state = other.nominal_at, other.scheduled_at, other.state
    _replace(replaced, now, using)
    made = [UniqueKey(key=key, job=row.pk) for key, row in mine.items() if row.pk not in instead]
    UniqueKey.objects.using(using).bulk_update(made, ["job"])
    return instead


def _hidden(tasks: Collection[ScheduledTask], seen: ScheduledTaskQuerySet | None) -> set[UUID]:
    """Those that whoever asks may not know of."""
    if seen is None or not tasks:
        return set()
    keys = {task.pk for task in tasks}
    return keys - set(seen.filter(pk__in=keys).values_list("pk", flat=True))


def _check_known(other: ScheduledTask, hidden: Collection[UUID]) -> None:
    if other.pk in hidden:
        raise Duplicate("There is such a job already.")


def _locked(keys: Sequence[str], using: str) -> dict[str, UUID | None]:
    """Lock the rows of these keys, in order, and make those that are not there; key → the last job that had it."""
    table = UniqueKey.objects.using(using)
    found: dict[str, UUID | None] = {}
    while len(found) < len(keys):  # Pruning may take one away before it is locked.
        table.bulk_create([UniqueKey(key=key) for key in keys if key not in found], ignore_conflicts=True)
        found = dict(table.filter(pk__in=keys).order_by("pk").select_for_update().values_list("key", "job"))
    return found


def _counts(other: ScheduledTask, unique: Unique, now: datetime) -> bool:
    is_over = unique.period is not None and other.created_at + unique.period <= now
    return not is_over and state_of(other, now) in unique.states


def _replace(tasks: Sequence[ScheduledTask], now: datetime, using: str) -> None:
    """Call off those that are open. One that has just been taken by a worker is called off, too."""
    writes = [Write(task=task, triggers=(Trigger.CANCEL,), reason=_REPLACED) for task in tasks if task.is_open]
    apply(writes, now=now, using=using)
