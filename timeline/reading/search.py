"""Find by words: entities, by the fields that a timeline names or as the host's own admin does; kinds of tasks; failures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db.models import Count, Exists, Min, OuterRef, Q
from django.utils import translation

from timeline.lifecycle import OPEN, State
from timeline.models import EntityRef, ScheduledTask, ref_with
from timeline.registry import registry

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet

    from timeline.models.task import ScheduledTaskQuerySet


LOOKED_AT: Final = 2_000  # Dead letters whose errors are read for words, the last that failed.
MOST_GROUPS: Final = 10
MOST_KINDS: Final = 10
MOST_LANGUAGES: Final = 8
UNLIKE: Final = 6  # The rank of what does not fit.


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
    """
    How well a name fits what was typed: 0 is best, ``UNLIKE`` not at all. *ada* is rather ada@example.com than
    ada2@example.com, and rather that than *Canada*. The last that fits has all words, somewhere.
    """
    name, words = name.casefold().strip(), words.casefold().strip()
    if name == words:
        return 0
    starts, is_whole = name.startswith(words), re.search(rf"(?<!\w){re.escape(words)}(?!\w)", name) is not None
    if starts or is_whole:
        return 1 if starts and is_whole else 2 if starts else 3
    if words in name:
        return 4
    return 5 if words and all(word in name for word in words.split()) else UNLIKE


def kinds_like(words: str) -> list[KindFound]:
    """
    Timelines and kinds of tasks by name, key and title, in each language of the site, the best first; timelines also by their
    events and states. Nothing is asked of the database.
    """
    best: dict[KindFound, int] = {}
    for language in _languages():
        with translation.override(language):
            for kind, text in _texts():
                best[kind] = min(best.get(kind, UNLIKE), rank(text, words))
    found = sorted((place, kind.task_key or kind.timeline, kind) for kind, place in best.items() if place < UNLIKE)
    return [kind for _place, _name, kind in found][:MOST_KINDS]


def _languages() -> list[str]:
    """Those in which somebody may know a title: all of the site's, unless there are very many."""
    here = translation.get_language() or settings.LANGUAGE_CODE
    others = [code for code, _name in settings.LANGUAGES] if len(settings.LANGUAGES) <= MOST_LANGUAGES else []
    return list(dict.fromkeys([here, settings.LANGUAGE_CODE, *others]))


def _texts() -> Iterator[tuple[KindFound, str]]:
    """What kinds of tasks and timelines are called, in the language of the moment."""
    for known in registry:
        timeline = KindFound(known.name)
        yield timeline, known.name
        for name in {*known.events, *known.states, *known.titles}:
            yield timeline, name
            if title := known.title_of(name):
                yield timeline, title
        for name in known.tasks:
            kind = KindFound(known.name, known.task_key(name))
            for text in filter(None, (kind.task_key, name, registry.told(kind.task_key)[0])):
                yield kind, text


def tasks_with(words: str, tasks: ScheduledTaskQuerySet) -> ScheduledTaskQuerySet:
    """Tasks of which this is the beginning of the id, eight digits at least; none for anything else. Bounded."""
    digits = words.replace("-", "").lower()
    if not re.fullmatch(r"[0-9a-f]{8,31}", digits):
        return tasks.none()
    first, last = (UUID(hex=digits.ljust(32, end)) for end in "0f")
    return tasks.filter(pk__gte=first, pk__lte=last).order_by("pk")[:MOST_KINDS]


def ref_in(words: str, models: Iterable[type[Model]]) -> EntityRef | None:
    """The entity that is named as pages name it, by its kind and its id: *booking 7*, ``portal.booking 7``; None: none is."""
    kind, _blank, key = words.strip().rpartition(" ")
    kind = kind.casefold().strip()
    for model in models:
        meta = model._meta
        if kind and key and kind in (str(meta.verbose_name).casefold(), meta.label_lower, meta.model_name):
            return EntityRef(meta.label_lower, key)
    return None


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
