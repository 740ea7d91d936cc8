"""Find by words: entities, by the fields that a timeline names or as the host's own admin does; kinds of tasks; failures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.core.exceptions import ValidationError
from django.db.models import Count, Exists, Min, OuterRef, Q

from timeline.lifecycle import OPEN, State
from timeline.models import EntityRef, ScheduledTask, ref_with
from timeline.registry import registry

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet

    from timeline.models.task import ScheduledTaskQuerySet


LOOKED_AT: Final = 2_000  # Dead letters whose errors are read for words, the last that failed.
MOST_GROUPS: Final = 10
MOST_KINDS: Final = 10


class AheadOf(NamedTuple):
    """How many open tasks an entity has, when the next is due, and how many failed for good and were not run again."""

    open_tasks: int
    next_at: datetime | None
    failed: int = 0


NOTHING = AheadOf(0, None)


class KindFound(NamedTuple):
    """A timeline whose name was found, or a kind of task by its key or title; ``task_key`` is empty for a timeline."""

    timeline: str
    task_key: str = ""


def rank(name: str, words: str) -> int:
    """How well a name fits what was typed: 0 is best."""
    name, words = name.casefold(), words.casefold()
    if name == words:
        return 0
    return 1 if name.startswith(words) else 2 if words in name else 3


def kinds_like(words: str) -> list[KindFound]:
    """Timelines and kinds of tasks by name, key and title, the best first. Nothing is asked of the database."""
    found: list[tuple[int, str, KindFound]] = []
    for known in registry:
        found.append((rank(known.name, words), known.name, KindFound(known.name)))
        for name, declared in known.tasks.items():
            key = known.task_key(name)
            best = min(rank(text, words) for text in (key, name, declared.title) if text)
            found.append((best, key, KindFound(known.name, key)))
    return [kind for place, _name, kind in sorted(found) if place < 3][:MOST_KINDS]


def failures_like(words: str, tasks: ScheduledTaskQuerySet) -> QuerySet[Any, Any]:
    """Ask for groups of dead letters whose errors have these words: group, key of the task, how many. It is bounded."""
    last = tasks.failed_alike().order_by("-scheduled_at", "-pk").values("pk")[:LOOKED_AT]
    found = tasks.dead_letters().filter(pk__in=last, error__icontains=words).order_by()
    counted = found.exclude(fingerprint="").values_list("fingerprint", "task_key").annotate(count=Count("pk"))
    return counted.order_by("-count", "task_key", "fingerprint")[:MOST_GROUPS]


def first_of(found: QuerySet[Model], most: int) -> list[Model]:
    """Read the first so many entities, by their keys. Words that the database cannot compare with a field find nothing."""
    try:
        return list(found.order_by("pk")[:most])
    except (ValueError, ValidationError, OverflowError):
        return []


def refs_of(entities: Sequence[Model]) -> list[EntityRef]:
    """References to entities, by the model with which they were read."""
    return [ref_with(type(entity), entity.pk) for entity in entities]


def ahead_of(refs: Iterable[EntityRef], tasks: ScheduledTaskQuerySet) -> dict[EntityRef, AheadOf]:
    """Count open tasks and failures, in one statement, of entities of which the reader may see a task, also an ended one."""
    asked: dict[str, list[str]] = {}
    for ref in refs:
        asked.setdefault(ref.label, []).append(ref.id)
    named = Q(pk__in=[])
    for label, ids in asked.items():
        named |= Q(entity_label=label, entity_id__in=ids)
    is_open = Q(state__in=sorted(OPEN))
    again = ScheduledTask.objects.using(tasks.db).filter(previous=OuterRef("pk"))
    is_dead = Q(state=State.DISCARDED) & ~Q(Exists(again))
    counted = (
        tasks.filter(named)
        .order_by()
        .values_list("entity_label", "entity_id")
        .annotate(
            count=Count("pk", filter=is_open),
            next_at=Min("scheduled_at", filter=is_open),
            failed=Count("pk", filter=is_dead),
        )
    )
    return {EntityRef(label, key): AheadOf(*numbers) for label, key, *numbers in counted} if asked else {}
