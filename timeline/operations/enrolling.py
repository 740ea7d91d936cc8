"""Enroll: start a timeline for entities that are older than it, any number, and leave out those that have a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

from django.db import connections

from timeline.dialects import dialect_of
from timeline.models import EntityRef
from timeline.models.entities import by_label
from timeline.operations.past import Past, check_past
from timeline.operations.sets import Portion, Tally
from timeline.operations.starting import start_many
from timeline.payloads import check_flag, check_text
from timeline.registry import registry
from timeline.store.change_columns import MAX_ACTOR


def enroll(
    *,
    timeline: str,
    batches: Iterable[Portion],
    key: str,
    params: dict[str, Any],
    started_at: datetime | str | None,
    once: bool,
    spread: timedelta | None = None,
    past: str = Past.RUN,
    actor: str = "",
    clock: Callable[[str], datetime],
) -> Tally:
    """
    Start a run for each of many entities that has none. Entities that have a run are not even locked.

    Args:
        timeline, batches, key, params, started_at, spread, clock: As for ``start_many``.
        once: Whether to leave out entities, too, whose run has ended.
        past: What happens to tasks that were due before. ``run``: they are due now. ``skip``: they are cancelled for good, as
            by an operator. ``expire``: they are cancelled as too late, and made again if their date changes. Tasks that follow
            a cancelled one are not made. Timers of machines run in any case.
        actor: Who decided that, for the log.

    Returns:
        What was done; ``again`` counts entities left out, ``cancelled`` counts tasks that were due before and do not run.

    Raises:
        InvalidInput: naming ``once``, ``past`` or ``actor``; also as for ``start_many``.
    """
    check_flag("once", once)
    passed, ended = 0, once or registry.timeline(timeline).once
    known = check_past(past)
    check_text("actor", actor, MAX_ACTOR)

    def remaining() -> Iterator[Portion]:
        nonlocal passed
        for batch in batches:
            left = without_run(batch, timeline, key, once=ended)
            passed += len(batch.refs) - len(left.refs)
            if left.refs:
                yield left

    started = start_many(
        timeline=timeline,
        batches=remaining(),
        key=key,
        params=params,
        started_at=started_at,
        spread=spread,
        past=known,
        actor=actor,
        clock=clock,
    )
    return started + Tally(again=passed)


def without_run(batch: Portion, timeline: str, key: str, *, once: bool) -> Portion:
    """Leave out of a batch the entities that have a run; with ``once``, also those whose run has ended."""
    dialect, having = dialect_of(batch.using), set()
    with connections[batch.using].cursor() as cursor:
        for label, refs in by_label(batch.refs).items():
            ids = dialect.list_of(ref.id for ref in refs)
            parameters = {"label": label, "ids": ids, "timeline": timeline, "key": key, "ended": once}
            cursor.execute(dialect.sql("with_run"), parameters)
            having |= {EntityRef(label, entity_id) for [entity_id] in cursor.fetchall()}
    return batch._replace(refs=[ref for ref in batch.refs if ref not in having])
