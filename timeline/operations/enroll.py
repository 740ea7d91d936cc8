"""Enroll: start a timeline for entities that are older than it, any number, and leave out those that have a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from django.core.exceptions import EmptyResultSet, FieldError, ValidationError
from django.db import DatabaseError, connections
from django.db.models import Model, QuerySet
from django.utils.translation import gettext_lazy as _

from timeline.dialects import dialect_of
from timeline.exceptions import InvalidInput
from timeline.models import EntityRef
from timeline.models.entities import by_label, load_entities
from timeline.models.facts import zone_of
from timeline.operations.sets import Portion, Tally, check_spread
from timeline.operations.start import Past, begins_of, check_past, is_past, start_many
from timeline.payloads import check_flag, check_text
from timeline.registry import registry
from timeline.store.changes import MAX_ACTOR
from timeline.store.run_insert import constantly, plan_runs
from timeline.store.transactions import atomic


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


@dataclass
class Ahead:
    """
    What ``enroll`` would do.

    Args:
        runs: How many runs would begin.
        passed: How many entities have a run already.
        days: Name of a task and the day of its due time, on the wall clock of its entity → how many.
        late: Name of a task → how many rows would be due before now, whatever happens to these.
        problems: Errors of entities that would stop ``enroll``: sentence → how many.
    """

    runs: int = 0
    passed: int = 0
    days: Counter[tuple[str, date]] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    problems: Counter[str] = field(default_factory=Counter)


def foresee_enrolling(
    *,
    timeline: str,
    batches: Iterable[Portion],
    key: str = "",
    started_at: datetime | str | None,
    once: bool,
    spread: timedelta | None = None,
    past: str = Past.RUN,
    clock: Callable[[str], datetime],
) -> Iterator[Ahead]:
    """
    Count what ``enroll`` would do, without locks; the same object after each batch. Errors of one entity go to ``problems``.
    """
    definition = registry.timeline(timeline)
    check_spread(spread)
    runs_late, begins, ahead = check_past(past) == Past.RUN, begins_of(definition, started_at), Ahead()
    for batch in batches:
        now = clock(batch.using)
        left = without_run(batch, timeline, key, once=once or definition.once)
        ahead.passed += len(batch.refs) - len(left.refs)
        entities = load_entities(left.refs, using=batch.using)
        ahead.problems.update(error.in_english() for error in entities.unreadable.values())
        since = begins or constantly(now)
        planned = plan_runs({definition.label: [definition]}, entities, key=key, begins=since, spread=spread, now=now)
        for beginning in planned:
            if isinstance(beginning.problem, InvalidInput):
                ahead.problems[str(beginning.problem)] += 1
                continue
            ahead.runs += 1
            zone = zone_of(definition, entities[beginning.ref])
            for columns in beginning.planned:
                name = columns["task_key"].partition(".")[2]
                if is_late := is_past(definition, columns, now):
                    ahead.late[name] += 1
                if runs_late or not is_late:
                    ahead.days[name, max(columns["scheduled_at"], now).astimezone(zone).date()] += 1
        yield ahead


def rows_matching(model: type[Model], filters: Mapping[str, Any], *, using: str) -> QuerySet[Model]:
    """The rows of a model that pass all lookups, unread. ``InvalidInput`` for ``filter``: a lookup does not fit the model."""
    rows: QuerySet[Model] = QuerySet(model, using=using)
    try:
        rows = rows.filter(**filters)
        with suppress(EmptyResultSet):
            rows.query.get_compiler(using).as_sql()  # Some lookups check their value only here.
    except (FieldError, ValidationError, ValueError, TypeError, ArithmeticError) as error:
        raise _misfit(model, error) from None
    return rows


@contextmanager
def blaming_filter(rows: QuerySet[Model], *, using: str) -> Iterator[None]:
    """
    Turn an error of the first statement on rows of ``rows_matching`` into ``InvalidInput`` for ``filter``. Only the database
    finds some mistakes, such as a bad regular expression. Errors of the connection, or of rows without a filter, pass.
    """
    try:
        with atomic(using=using):
            yield
    except (DatabaseError, ValueError, ArithmeticError) as error:
        if not rows.query.where or not connections[using].is_usable():
            raise
        raise _misfit(rows.model, error) from error


def _misfit(model: type[Model], error: Exception) -> InvalidInput:
    problem, remedy = _("does not fit %(model)s (%(error)s)."), _("Give lookups such as created_at__year=2026.")
    return InvalidInput("filter", problem, remedy, model=model._meta.label, error=str(error).strip())
