"""Give places of limits: for each key, to the tasks that are first in its queue, as long as places are free."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import connections

from timeline.dialects import dialect_of, narrowed
from timeline.features.limits.declaration import limit_of
from timeline.lifecycle import Trigger
from timeline.models import ScheduledTask
from timeline.registry import registry
from timeline.store.returned_rows import COLUMNS, as_tasks
from timeline.store.task_key_stats import NOTHING, left_out
from timeline.store.transactions import atomic
from timeline.store.transition import Write, advance, apply

LOOKED_AT: Final = 200  # How many keys of a kind one look reads. The next look goes on after them.
TOGETHER: Final = 200  # For how many keys one statement gives places. It takes about 20 ms.
A_FEW: Final = 20  # How many keys are read first, if few are wanted.
# Called with a key and a number. Gives so many keys after it, each with the attempts of its first task; see ``WaitingKey``.
Look = Callable[[str, int], list[tuple[str, int | None]]]
_turn: dict[tuple[str, str], str] = {}  # Alias and kind → the key after which the next look begins.


class LimitedKind(NamedTuple):
    """
    A kind with a limit: only so many of its tasks may be under way at once.

    Args:
        places: The number of places of each key of the limit.
        left_out: Names of the lines of statements by which some of its tasks are skipped.
        others: Kinds that compete for the same keys, each with its number of places. A waiting task of another kind goes first
            if it is more urgent, or as urgent and due earlier, and its kind has a place.
    """

    task_key: str
    places: int
    left_out: frozenset[str] = frozenset()
    others: tuple[tuple[str, int], ...] = ()

    @property
    def parts(self) -> frozenset[str]:
        """Names of the optional lines that a statement about it needs."""
        return self.left_out | ({"shared", *(f"shared_{name}" for name in self.left_out)} if self.others else set())


def limited_keys(queue: str | None = None) -> list[str]:
    """Task keys of tasks with a limit, sorted; with a queue, those that are declared for it."""
    return [task_key for task_key in registry.task_keys(queue) if registry.task(task_key)[1].options.limit is not None]


def limited_kinds(task_keys: Sequence[str], *, using: str) -> list[LimitedKind]:
    """Those of these kinds that have tasks waiting for a place, and are not left out. One statement, two if anything is."""
    if not task_keys:
        return []
    dialect = dialect_of(using)
    with connections[using].cursor() as cursor:
        cursor.execute(dialect.sql("limited_kinds"), {"task_keys": dialect.list_of(task_keys)})
        rows = cursor.fetchall()
    left = left_out(using=using) if rows and rows[0][1] else NOTHING
    limits = {task_key: limit_of(registry.task(task_key)[1]) for task_key, _some in rows if not left.covers(task_key)}
    return competing(
        [LimitedKind(task_key, limit.most, left.parts) for task_key, limit in limits.items() if limit is not None]
    )


def competing(kinds: Iterable[LimitedKind]) -> list[LimitedKind]:
    """Set for each of some kinds which of the others compete with it for the same keys."""
    sharing: dict[tuple[str, bool], list[LimitedKind]] = defaultdict(list)
    kinds = list(kinds)
    for kind in kinds:
        sharing[_shared_by(kind)].append(kind)
    return [
        kind._replace(
            others=tuple((other.task_key, other.places) for other in sharing[_shared_by(kind)] if other != kind)
        )
        for kind in kinds
    ]


def _shared_by(kind: LimitedKind) -> tuple[str, bool]:
    """Kinds that may have the same keys share this: the name of the key, and whether the value of a field is part of it."""
    limit = limit_of(registry.task(kind.task_key)[1])
    return (limit.key or kind.task_key, bool(limit.by)) if limit is not None else (kind.task_key, False)


class WaitingKey(NamedTuple):
    """
    A key of a limit, one of whose tasks may start: it has a place, or waits, and a place is free. ``attempt`` is that of its
    first task; a task that rested starts from 0 again.
    """

    limit_key: str
    attempt: int


class KeysFound(NamedTuple):
    """A look at the keys of a kind: keys with a task that may start, all keys read, the last one, and whether none is left."""

    waiting: list[WaitingKey]
    seen: set[str]
    after: str
    is_last: bool


def find_waiting(kind: LimitedKind, *, most: int, using: str) -> list[WaitingKey]:
    """
    Find keys of a kind with a task that may start, at most ``most`` and ``TOGETHER``, in their order. At most ``LOOKED_AT``
    are read. The next look goes on after the last key found, so that each gets its turn.
    """
    begun = turn_of(kind.task_key, using=using)
    look = partial(_look, kind, using=using)
    found = _found(look, begun, set(), min(most, TOGETHER))
    if begun and found.is_last:  # Go on with the keys before the one where the look began.
        rest = min(most, TOGETHER) - len(found.waiting)
        before = _found(look, "", found.seen, rest)
        found = KeysFound(found.waiting + before.waiting, before.seen, before.after, before.is_last)
    leave_turn(kind.task_key, "" if found.is_last else found.after, using=using)
    return found.waiting


def _found(look: Look, after: str, known: set[str], most: int) -> KeysFound:
    """Find up to so many keys after a key. Stops at a key that is known already, and at the last key."""
    waiting: list[WaitingKey] = []
    keys: set[str] = set()
    left = LOOKED_AT
    while left > 0 and len(waiting) < most:
        size = min(left, max(A_FEW, most) if left == LOOKED_AT else left)
        seen = look(after, size)
        for limit_key, attempt in seen:
            if limit_key in known:
                return KeysFound(waiting, keys, after, True)
            after = limit_key
            keys.add(limit_key)
            if attempt is not None:
                waiting.append(WaitingKey(limit_key, attempt))
            if len(waiting) == most:
                return KeysFound(waiting, keys, after, False)
        left -= len(seen)
        if len(seen) < size:
            return KeysFound(waiting, keys, after, True)
    return KeysFound(waiting, keys, after, False)


def leave_turn(task_key: str, after: str, *, using: str) -> None:
    """Make the next look begin after this key."""
    _turn[using, task_key] = after


def turn_of(task_key: str, *, using: str) -> str:
    """The key after which the next look begins."""
    return _turn.get((using, task_key), "")


def take(
    trigger: Trigger,
    kind: LimitedKind,
    limit_keys: Sequence[str],
    *,
    each: int,
    attempts: int,
    now: datetime,
    using: str,
    lease: timedelta | None = None,
    claim_token: UUID | None = None,
    worker: str | None = None,
) -> list[ScheduledTask]:
    """
    Move tasks that wait for a place, and give a place to each, in one write that is committed when this returns.

    ``each`` is how many tasks at most for each key. Tasks with more than ``attempts`` are left out, and keys for which
    somebody else gives places at the moment.
    """
    if not limit_keys:
        return []
    dialect = dialect_of(using)
    asked: dict[str, Any] = {
        "task_key": kind.task_key,
        "places": kind.places,
        "each": each,
        "attempts": attempts,
        **_others(kind, using),
    }
    with atomic(using=using):
        if dialect.has_set_statements:
            tried = _tried(limit_keys, using)
            if not tried:
                return []
            rows = advance(
                "limited",
                trigger,
                columns=COLUMNS,
                lease=lease,
                claim_token=claim_token,
                worker=worker,
                limit_keys=tried,
                parts=kind.parts,
                now=now,
                using=using,
                **asked,
            )
            return as_tasks(rows, using)
        sql = narrowed(dialect.sql("held_limited"), kind.parts).replace("{columns}", _OF_TASK)
        ready = ScheduledTask.objects.using(using).raw(sql, {**asked, "limit_keys": dialect.list_of(limit_keys)})
        given = _numbered(list(ready), limit_keys, kind.places, each, using)
        writes = [
            Write(task=task, triggers=(trigger,), slot=slot, lease=lease, claim_token=claim_token, worker=worker)
            for task, slot in given
        ]
        return apply(writes, now=now, using=using)


_OF_TASK: Final = ", ".join(f"task.{column}" for column in COLUMNS.split(", "))


def _others(kind: LimitedKind, using: str) -> dict[str, Any]:
    """The kinds that compete with it, each with its places, as parameters. SQLite accepts no lists, even if unused."""
    if not dialect_of(using).has_arrays:
        return {"others": json.dumps(kind.others)}
    return {
        "others": [task_key for task_key, _places in kind.others],
        "places_of_others": [places for _task_key, places in kind.others],
    }


def _look(kind: LimitedKind, after: str, most: int, *, using: str) -> list[tuple[str, int | None]]:
    asked: dict[str, Any] = {"task_key": kind.task_key, "after": after, "most": most, "places": kind.places}
    with connections[using].cursor() as cursor:
        cursor.execute(narrowed(dialect_of(using).sql("limited_keys"), kind.parts), asked)
        return list(cursor.fetchall())


def _tried(limit_keys: Sequence[str], using: str) -> list[str]:
    """Lock keys until the transaction ends, except those that somebody else has locked. Returns the locked keys."""
    with connections[using].cursor() as cursor:
        cursor.execute(dialect_of(using).sql("try_limits"), {"limit_keys": list(limit_keys)})
        return [key for (key,) in cursor.fetchall()]


def _numbered(
    ready: Iterable[ScheduledTask], limit_keys: Sequence[str], places: int, each: int, using: str
) -> list[tuple[ScheduledTask, int]]:
    """Give a number to each task: a task that has one keeps it, and the others get free numbers."""
    held: dict[str, set[int]] = defaultdict(set)
    rows = ScheduledTask.objects.using(using).filter(limit_key__in=limit_keys, slot__gt=0)
    for limit_key, slot in rows.values_list("limit_key", "slot"):
        held[limit_key].add(slot)
    by_key: dict[str, list[ScheduledTask]] = defaultdict(list)
    for task in ready:
        by_key[task.limit_key].append(task)
    return list(chain.from_iterable(_of_key(by_key[key], held[key], places, each) for key in limit_keys))


def _of_key(tasks: Sequence[ScheduledTask], held: set[int], places: int, each: int) -> list[tuple[ScheduledTask, int]]:
    given = [(task, task.slot) for task in tasks if task.slot][:each]
    room = max(min(each - len(given), places - len(held)), 0)
    free = [number for number in range(1, places + 1) if number not in held][:room]
    return given + list(zip((task for task in tasks if not task.slot), free, strict=False))
