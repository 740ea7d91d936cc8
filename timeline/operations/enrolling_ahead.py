"""Foresee what ``enroll`` would do: how many runs begin, and how many tasks are due on which day. Writes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from timeline.exceptions import InvalidInput
from timeline.models.entities import load_entities
from timeline.models.facts import zone_of
from timeline.operations.enrolling import without_run
from timeline.operations.past import Past, check_past, is_past
from timeline.operations.sets import Portion, check_spread
from timeline.operations.starting import begins_of
from timeline.registry import registry
from timeline.store.beginning import constantly, plan_runs


@dataclass
class Ahead:
    """
    What ``enroll`` would do.

    Args:
        runs: How many runs would begin.
        passed: How many entities have a run already.
        days: Name of a task and the day on which it would be due, on the wall clock of its entity → how many.
        late: Name of a task → how many of its rows would be due before now, whatever happens to these.
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
    Count what ``enroll`` would do at present. Three statements for each batch, and no locks.

    Args:
        timeline, batches, key, started_at, once, spread, past, clock: As for ``enroll``.

    Returns:
        After each batch, what was counted so far. It is always the same object.

    Raises:
        UnknownTimeline, InvalidInput: as for ``enroll``, except errors of one entity, which are counted in ``problems``.
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
