"""What the operations for many entities have in common: batches, portions of a batch, and counts."""

from __future__ import annotations

import gc
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any, Final, NamedTuple, TypeVar

from django.db.models import Model, QuerySet
from django.utils.translation import gettext_lazy as _

from timeline.exceptions import InvalidInput
from timeline.models import EntityRef
from timeline.models.entities import path_to, ref_with
from timeline.store.multi_query import can_pipeline, pipelining
from timeline.store.signal_dispatch import may_hosts_write
from timeline.timing import LONGEST_SPREAD, is_spread

# A collection begins when so many more objects were made than freed: those of a portion of some thousand entities. With
# Python's default of 700, these objects are searched again and again, and after a few thousand entities all objects of the
# process are searched.
MANY: Final = 50_000

_lock = threading.Lock()
_blocks = 0  # How many blocks are entered, in all threads.
_here = threading.local()  # How many of these this thread is in, as ``blocks``.
_usual = _ours = gc.get_threshold()

Item = TypeVar("Item")
Some = TypeVar("Some")
BATCH: Final = 1000
MAX_BATCH: Final = 10_000
PORTIONS: Final = 4  # Of a batch: while the database writes one, the next is prepared.
PORTION: Final = 100  # Entities at least.


def seldom(usual: tuple[int, int, int]) -> tuple[int, int, int]:
    """Thresholds to collect seldom, in place of the usual ones. A host that collects even less, or never, keeps its own."""
    return (max(MANY, usual[0]) if usual[0] else 0, *usual[1:])


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Collect garbage seldom within the block: it took a quarter of the time. Thresholds that others set meanwhile stay."""
    global _blocks, _usual, _ours
    with _lock:
        if not _blocks:
            _usual = gc.get_threshold()
            _ours = seldom(_usual)
            gc.set_threshold(*_ours)
        _blocks += 1
        _here.blocks = getattr(_here, "blocks", 0) + 1
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            _here.blocks -= 1
            _end_after_the_last()


def _end_after_the_last() -> None:
    if not _blocks and gc.get_threshold() == _ours:
        gc.set_threshold(*_usual)


def _begin_child() -> None:
    """A forked process has only the thread that forked it: the blocks of others never end there, nor does a held lock."""
    global _blocks, _lock
    _lock, _blocks = threading.Lock(), getattr(_here, "blocks", 0)
    _end_after_the_last()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_child)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """
    What a verb for many entities did: counts, so that a million entities take no room.

    Args:
        again: Entities for which nothing was done: the event was recorded before, or there was a run already.
        tasks: Of the started runs.
        cancelled: Tasks of the ended runs; and with ``enroll``, tasks that were due before and do not run.
    """

    recorded: int = 0
    again: int = 0
    started: int = 0
    ended: int = 0
    moved: int = 0
    tasks: int = 0
    cancelled: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(**{field.name: getattr(self, field.name) + getattr(other, field.name) for field in fields(self)})


def check_batch_size(size: int) -> None:
    """
    Raise ``InvalidInput`` for a size of batches that is no number, or with which a transaction would hold too many locks.
    """
    if type(size) is not int or not 1 <= size <= MAX_BATCH:
        remedy = _("Give a whole number from 1 to %(most)s.")
        raise InvalidInput("batch_size", _("%(value)r is not allowed."), remedy, value=size, most=MAX_BATCH)


def check_spread(spread: timedelta | None) -> None:
    """Raise ``InvalidInput`` for a ``spread`` that is no positive length of time, or too long."""
    if spread is not None and not is_spread(spread):
        remedy = _("Give a positive timedelta, %(most)s days at most.")
        raise InvalidInput("spread", _("%(value)r is not allowed."), remedy, value=spread, most=LONGEST_SPREAD.days)


class Portion(NamedTuple):
    """Entities of one transaction. ``gone``: whether some may be missing, as they came from a query."""

    using: str
    refs: list[EntityRef]
    gone: bool = False


def in_batches(named: Iterable[tuple[str, EntityRef]], size: int) -> Iterator[Portion]:
    """Group entities, each given with its database, into batches. At most one batch for each database is in memory."""
    waiting: dict[str, list[EntityRef]] = defaultdict(list)
    for using, ref in named:
        waiting[using].append(ref)
        if len(waiting[using]) == size:
            yield Portion(using, waiting.pop(using))
    for using, refs in waiting.items():
        yield Portion(using, refs)


def pages(queryset: QuerySet[Any], model: type[Model], size: int, *, using: str) -> Iterator[Portion]:
    """Read a queryset in order of its keys, with a short statement for each batch. No cursor stays open between them."""
    rows = queryset.using(using).order_by("pk").values_list("pk", path_to(queryset.model, model) or "pk")
    some = list(rows[:size])
    while some:
        yield Portion(using, list(dict.fromkeys(ref_with(model, key) for _pk, key in some)), gone=True)
        some = list(rows.filter(pk__gt=some[-1][0])[:size])


def check_whole(queryset: QuerySet[Any]) -> None:
    """Raise ``InvalidInput``, with the remedy, for a queryset that cannot be read in order of its keys."""
    query = queryset.query
    if query.is_sliced or query.combinator or query.distinct_fields:
        problem = _("is a slice, a union or distinct by fields.")
        raise InvalidInput("entities", problem, _("Give a queryset that only filters."))


def rounds(refs: Iterable[EntityRef]) -> list[list[EntityRef]]:
    """Split entities into rounds: no entity is twice in a round, and each is in as many rounds as it was given times."""
    parts: list[list[EntityRef]] = []
    seen: dict[EntityRef, int] = defaultdict(int)
    for ref in refs:
        if seen[ref] == len(parts):
            parts.append([])
        parts[seen[ref]].append(ref)
        seen[ref] += 1
    return parts


def in_portions(
    work: Callable[[Mapping[EntityRef, Item]], Tally],
    entities: Mapping[EntityRef, Item],
    *,
    whole: bool = False,
    using: str,
) -> Tally:
    """
    Do some work for locked entities, in a few portions if statements can be pipelined and ``whole`` is not set. In one, if
    receivers of the host hear of runs that begin: they may need an answer at once, or go on after an error.
    """
    parts = portions_of(list(entities.items()), whole=whole or may_hosts_write(), using=using)
    if len(entities) < PORTION:
        return work(entities)
    with collecting_seldom():
        if len(parts) == 1:
            return work(entities)
        tally = Tally()
        with pipelining(using):
            for part in parts:
                tally += work(dict(part))
        return tally


def portions_of(several: Sequence[Some], *, whole: bool = False, using: str) -> list[Sequence[Some]]:
    """Split the items of one transaction into a few portions, if statements can be pipelined; otherwise give one portion."""
    size = max(PORTION, -(-len(several) // PORTIONS))
    if whole or size >= len(several) or not can_pipeline(using):
        return [several]
    return [several[start : start + size] for start in range(0, len(several), size)]
