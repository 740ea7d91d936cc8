"""Limits: who holds the places of a key, which task keeps it closed, and how many tasks wait."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Count
from django.utils.translation import gettext as _

from timeline.features.limits.declaration import Limit, limit_of
from timeline.lifecycle import FINAL, State
from timeline.models import ScheduledTask
from timeline.timing import told_time

if TYPE_CHECKING:
    from timeline.definition import Definition
    from timeline.models.task import ScheduledTaskQuerySet

_TOLD: Final = ("limit_key", "slot", "task_key", "state", "started_at", "finished_at")
TOLD: Final = 5  # How many holders are named, if a key has many.


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldPlace:
    """A place that a task holds, or keeps closed. ``since``: its last attempt's start, or its end; empty: it is on its way."""

    slot: int
    task_id: str
    task_key: str
    state: str
    since: str

    @property
    def state_label(self) -> str:
        return str(State(self.state).label)

    @property
    def is_closed(self) -> bool:
        """Whether a person has to open it."""
        return self.state in FINAL


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitEntry:
    """A key: its held places, by number, and how many tasks wait for one."""

    key: str
    places: list[HeldPlace]
    waiting: int

    @property
    def is_closed(self) -> bool:
        """Whether one of its places is closed."""
        return any(place.is_closed for place in self.places)

    def as_data(self) -> dict[str, Any]:
        return asdict(self) | {"closed": self.is_closed}


def limits(*, using: str) -> list[LimitEntry]:
    """List the keys that have held places or waiting tasks; in two statements, however many there are."""
    tasks = ScheduledTask.objects.using(using)
    held: dict[str, list[HeldPlace]] = defaultdict(list)
    for task in tasks.filter(slot__gt=0).only(*_TOLD).order_by("limit_key", "slot"):
        held[task.limit_key].append(_place(task))
    waiting = tasks.filter(state=State.AVAILABLE, limit_key__gt="", slot=0).values_list("limit_key")
    counts = dict(waiting.annotate(count=Count("pk")).order_by())
    return [
        LimitEntry(key=key, places=held.get(key, []), waiting=counts.get(key, 0)) for key in sorted({*held, *counts})
    ]


def closed(tasks: ScheduledTaskQuerySet, **_others: object) -> Iterator[tuple[str, ScheduledTaskQuerySet]]:
    """What waits for a person: places that a task keeps closed."""
    yield "closed", tasks.closing()


def places_of(task_keys: Sequence[str], *, using: str) -> dict[str, tuple[int, int]]:
    """Count for each kind the places that its tasks hold, and the tasks that wait for one. Two statements at most."""
    if not task_keys:
        return {}
    tasks = ScheduledTask.objects.using(using).filter(task_key__in=task_keys).values_list("task_key").order_by()
    held = dict(tasks.filter(slot__gt=0).annotate(count=Count("pk")))
    waiting = dict(tasks.filter(state=State.AVAILABLE, limit_key__gt="", slot=0).annotate(count=Count("pk")))
    return {key: (held.get(key, 0), waiting.get(key, 0)) for key in task_keys}


def in_inventory(definitions: Iterable[Definition], *, using: str) -> dict[str, dict[str, object]]:
    """What the inventory says of limited kinds: the limit in words, and the places held and waited for."""
    limited = {
        definition.task_key(name): limit
        for definition in definitions
        for name, declared in definition.tasks.items()
        if (limit := limit_of(declared)) is not None
    }
    places = places_of(list(limited), using=using)
    return {
        key: {"limit": limit_in_words(limit), "held": places[key][0], "waiting": places[key][1]}
        for key, limit in limited.items()
    }


def limit_in_words(limit: Limit) -> str:
    """Describe the limit of a task: how many at once, what competes, and until when a place is held."""
    of = " ".join(filter(None, [limit.key, limit.by and f"({limit.by})"]))
    said = _("%(most)d at once") % {"most": limit.most}
    said = _("%(said)s for each of %(of)s") % {"said": said, "of": of} if limit.by else f"{said} ({of})" if of else said
    return said if limit.until == "attempt" else _("%(said)s, until its end") % {"said": said}


def told_place(task: ScheduledTask, *, using: str) -> Iterator[str]:
    """Say of a task who holds the places that it waits for, or that it keeps one closed itself."""
    if not task.limit_key:
        return
    if task.state in FINAL:
        if task.slot:
            yield _(
                "It keeps “%(key)s” closed, since it was started and did not complete: redrive it, or open the limit."
            ) % {"key": task.limit_key}
    elif task.slot:
        yield _("It holds place %(slot)s of “%(key)s”.") % {"slot": task.slot, "key": task.limit_key}
    elif task.state == State.AVAILABLE:
        rows = (
            ScheduledTask.objects.using(using)
            .filter(limit_key=task.limit_key, slot__gt=0)
            .only(*_TOLD)
            .order_by("slot")
        )
        yield from _told(task.limit_key, map(_place, rows[:TOLD]))


def _told(key: str, places: Iterable[HeldPlace]) -> Iterator[str]:
    some = False
    for place in places:
        some = True
        told = {"key": key, "task": place.task_key, "id": place.task_id, "at": place.since}
        if place.is_closed:
            told["state"] = str(State(place.state).label)
            yield (
                _(
                    "“%(key)s” is closed by %(task)s (%(id)s), which was started and is %(state)s since %(at)s: redrive it,"
                    " or open the limit."
                )
                % told
            )
        elif place.since:
            yield _("It waits for a place of “%(key)s”, held by %(task)s (%(id)s) since %(at)s.") % told
        else:
            yield (
                _("It waits for a place of “%(key)s”, held by %(task)s (%(id)s), which is on its way to a worker.")
                % told
            )
    if not some:
        yield _("It needs a place of “%(key)s”, and one is free.") % {"key": key}


def _place(task: ScheduledTask) -> HeldPlace:
    since = task.finished_at or task.started_at
    return HeldPlace(
        slot=task.slot,
        task_id=str(task.pk),
        task_key=task.task_key,
        state=task.state,
        since=told_time(since) if since else "",
    )
