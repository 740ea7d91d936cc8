"""What is on hold. Rows of tasks do not show it: statements that claim, begin or look read the table of holds, mostly empty."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import Final
from uuid import UUID

from django.db import connections
from django.db.models import Count, Exists, OuterRef, Q
from django.utils import translation

from timeline.dialects import Among, dialect_of
from timeline.exceptions import UnknownTask
from timeline.features.holds.sentences import ON_HOLD
from timeline.lifecycle import OPEN, Reason, ReasonCode, State
from timeline.models import Admission, EntityRef, Hold, ScheduledTask, Scope
from timeline.models.decisions import HoldQuerySet
from timeline.models.task import ScheduledTaskQuerySet
from timeline.registry import registry

# Whether anything is on hold: a column for statements that ask for something else.
IS_ANY_OPEN: Final = "EXISTS (SELECT 1 FROM timeline_hold WHERE released_at IS NULL)"

MOST_READ: Final = 200  # Holds are read together with something else up to so many.
LONGEST: Final = timedelta(days=7)  # The longest time within which starts are counted.
_UNSTARTED: Final = sorted(OPEN - {State.ACTIVE})


@dataclass(frozen=True, slots=True)
class OnHold:
    """Scope and target of each open hold, whatever entities tasks are about."""

    targets: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def read(cls, found: str | None) -> OnHold:
        """Read the value that a statement with ``{kinds_on_hold}`` returns."""
        return cls(frozenset((scope, target) for scope, target in json.loads(found))) if found else cls()

    @property
    def parts(self) -> frozenset[str]:
        """Names of the lines of statements that leave out tasks of held entities; none: no entity is on hold."""
        return frozenset({"on_hold"} if (Scope.ENTITY, "") in self.targets else ())

    @property
    def is_any(self) -> bool:
        """Whether anything is on hold."""
        return bool(self.targets)

    def covers(self, task_key: str, queue: str = "") -> bool:
        """Whether a kind is on hold; ``queue`` is assumed where this process does not know the kind."""
        if not self.targets:
            return False
        queue, tags = places_of(task_key, queue)
        asked = {
            (Scope.EVERYTHING.value, ""),
            (Scope.TASK.value, task_key),
            (Scope.TIMELINE.value, task_key.partition(".")[0]),
            (Scope.QUEUE.value, queue),
            *((Scope.TAG.value, tag) for tag in tags),
        }
        return not asked.isdisjoint(self.targets)


def places_of(task_key: str, queue: str = "") -> tuple[str, tuple[str, ...]]:
    """
    The queue and the tags that a kind declares; else ``queue``, and none. Its tasks are claimed by this queue, even if their
    rows have another.
    """
    try:
        options = registry.task(task_key)[1].options
    except UnknownTask:
        return queue, ()
    return options.queue, options.tags


def names_to_hold() -> dict[Scope, list[str]]:
    """What this process could put on hold by a name."""
    keys = registry.task_keys()
    return {
        Scope.TIMELINE: sorted(definition.name for definition in registry),
        Scope.TASK: keys,
        Scope.QUEUE: sorted({places_of(key)[0] for key in keys}),
        Scope.TAG: sorted({tag for key in keys for tag in places_of(key)[1]}),
    }


def is_any_open(*, using: str) -> bool:
    """Whether anything is on hold. This is one look in an index that is mostly empty."""
    with connections[using].cursor() as cursor:
        cursor.execute(f"SELECT {IS_ANY_OPEN}")
        return bool(cursor.fetchone()[0])


def on_hold(*, using: str) -> OnHold:
    """Read which kinds are on hold."""
    with connections[using].cursor() as cursor:
        cursor.execute(dialect_of(using).sql("on_hold"))
        return OnHold.read(cursor.fetchone()[0])


def holds_over(tasks: Sequence[ScheduledTask], *, using: str) -> dict[UUID, list[Hold]]:
    """Find in one statement the open holds over tasks: id of a task → its holds, the oldest first."""
    dialect, refs = dialect_of(using), sorted({task.entity_ref for task in tasks if task.entity_label})
    return _by_task(Hold.objects.using(using).raw(dialect.sql("holds_over"), dialect.entities_of(refs)), tasks)


def some_open(*, using: str) -> HoldQuerySet:
    """Ask for open holds together with something else, for ``over_these``."""
    return Hold.objects.using(using).open().order_by("created_at", "pk")[: MOST_READ + 1]


def next_release(*, now: datetime, until: datetime | None, using: str) -> datetime | None:
    """When the next hold ends by itself, if that is not after ``until``."""
    ahead = Hold.objects.using(using).open().filter(lifted_at=None, until__gt=now)
    ahead = ahead if until is None else ahead.filter(until__lte=until)
    return ahead.order_by("until").values_list("until", flat=True).first()


def newest(*, most: int, using: str) -> tuple[HoldQuerySet, Sequence[Count]]:
    """The newest holds, and how many of them there are, have ended, and are done with: each change changes one of these."""
    holds = Hold.objects.using(using)
    latest = holds.filter(pk__in=holds.order_by("-pk").values("pk")[:most])
    return latest, (Count("pk"), Count("lifted_at"), Count("released_at"))


def over_these(tasks: Sequence[ScheduledTask], found: Sequence[Hold], *, using: str) -> dict[UUID, list[Hold]]:
    """The same among holds that ``some_open`` has found; one statement if there are more."""
    if not tasks or not found:
        return {}
    return _by_task(found, tasks) if len(found) <= MOST_READ else holds_over(tasks, using=using)


def _by_task(holds: Iterable[Hold], tasks: Iterable[ScheduledTask]) -> dict[UUID, list[Hold]]:
    named: dict[EntityRef, list[Hold]] = defaultdict(list)
    others = list[Hold]()
    for hold in holds:
        if hold.scope != Scope.ENTITY:
            others.append(hold)
            continue
        for ref in hold.refs:
            named[ref].append(hold)
    found = {}
    for task in tasks:
        over = [*named.get(task.entity_ref, ()), *(hold for hold in others if _covers(hold, task))]
        if over:
            found[task.id] = sorted(over, key=lambda hold: (hold.created_at, hold.pk))
    return found


def covers(hold: Hold, task: ScheduledTask) -> bool:
    """Whether a hold covers a task."""
    return task.entity_ref in hold.refs if hold.scope == Scope.ENTITY else _covers(hold, task)


def _covers(hold: Hold, task: ScheduledTask) -> bool:
    return OnHold(frozenset({(hold.scope, hold.target)})).covers(task.task_key, task.queue)


def tasks_under(holds: Iterable[Hold], tasks: ScheduledTaskQuerySet) -> ScheduledTaskQuerySet:
    """Narrow tasks down to those that any of some holds covers."""
    return tasks.filter(reduce(or_, map(_under, holds)))


def _under(hold: Hold) -> Q:
    match hold.scope:
        case Scope.ENTITY:
            return reduce(or_, (Q(entity_label=ref.label, entity_id=ref.id) for ref in hold.refs))
        case Scope.TASK:
            return Q(task_key=hold.target)
        case Scope.TIMELINE:
            return Q(task_key__startswith=f"{hold.target}.")
        case Scope.QUEUE:
            unknown = Q(queue=hold.target) & ~Q(task_key__in=registry.task_keys())
            return Q(task_key__in=registry.task_keys(hold.target)) | unknown
        case Scope.TAG:
            return Q(task_key__in=[key for key in registry.task_keys() if hold.target in places_of(key)[1]])
        case _:
            return ~Q(pk__in=[])  # All of them.


def reason_of(hold: Hold) -> Reason:
    """The reason that a task is on hold, for its row and its log."""
    return ON_HOLD(what=in_english(hold), at=hold.created_at)


def in_english(hold: Hold) -> str:
    """What a hold covers, in English, as rows store it."""
    with translation.override("en"):
        return hold.what


def admitted_among(task_ids: Iterable[UUID], *, using: str) -> set[UUID]:
    """The tasks that were let in before. Each counts once, whatever became of its attempt."""
    return set(Admission.objects.using(using).filter(Among(task_ids)).values_list("pk", flat=True))


def admit(task_key: str, times: Mapping[UUID, datetime], *, using: str) -> None:
    """Write down that tasks are let in, each with the story time from which it counts; outside of a transaction, at once."""
    rows = [Admission(task_id=task_id, task_key=task_key, at=at) for task_id, at in sorted(times.items())]
    Admission.objects.using(using).bulk_create(rows, ignore_conflicts=True)


def let_go(task_key: str, *, at: datetime, made_before: UUID, most: int, using: str) -> int:
    """
    Let in, uncounted, up to ``most`` tasks that were due when a person released the brake; fewer: none is left.

    ``made_before`` is an id made at the release: tasks made later have greater ids. One statement.
    """
    connection = connections[using]
    parameters = {
        "task_key": task_key,
        "at": connection.ops.adapt_datetimefield_value(at),
        "made_before": made_before if connection.features.has_native_uuid_field else made_before.hex,
        "most": most,
    }
    with connection.cursor() as cursor:
        cursor.execute(dialect_of(using).sql("let_go"), parameters)
        return int(cursor.rowcount)


def withdraw(task_ids: Iterable[UUID], *, using: str) -> None:
    """Delete the notes that tasks were let in, since they were not let in after all."""
    Admission.objects.using(using).filter(Among(task_ids)).delete()


def released_at(task_key: str, *, using: str) -> datetime | None:
    """When somebody last released the hold that the brake of a kind had made; None: nobody has."""
    holds = Hold.objects.using(using).by_the_brake(task_key).filter(lifted_at__isnull=False)
    return holds.order_by("-lifted_at").values_list("lifted_at", flat=True).first()


def would_start(
    task_key: str, *, most: int, since: datetime, later_than: datetime | None, now: datetime, using: str
) -> int:
    """
    Count, up to ``most`` + 1, tasks let in since the time began, and those that are due and wait.

    Not counted: what a guard has called off, or an entity's hold keeps; and what was let in up to ``later_than``, when a person
    released the brake.
    """
    tasks = ScheduledTask.objects.using(using)
    called_off = tasks.filter(pk=OuterRef("pk"), state=State.CANCELLED, reason_code=ReasonCode.GUARD)
    let_in = Admission.objects.using(using).filter(task_key=task_key, at__gt=since)
    waiting = tasks.filter(task_key=task_key, state__in=_UNSTARTED, scheduled_at__lte=now)
    if later_than is not None:
        let_in = let_in.filter(at__gt=later_than)
    count = let_in.exclude(Exists(called_off))[: most + 1].count()
    if count > most:
        return count
    known = Admission.objects.using(using).filter(pk=OuterRef("pk"))
    return count + waiting.exclude(Exists(known)).not_of_held_entities()[: most + 1 - count].count()


def prune_admissions(before: datetime, *, most: int, using: str) -> None:
    """Delete what is not counted any more at this story time, of tasks that have ended and so are not let in again."""
    rows = Admission.objects.using(using)
    old = rows.filter(at__lt=before - LONGEST).order_by("at", "pk").values_list("at", "pk")
    found = list(old[:most])
    while found:
        keys = [key for _at, key in found]
        states = dict(ScheduledTask.objects.using(using).filter(Among(keys)).values_list("pk", "state"))
        gone = [key for key in keys if states.get(key) not in OPEN]
        rows.filter(Among(gone)).delete()
        at, key = found[-1]
        found = [] if gone else list(old.filter(Q(at__gt=at) | Q(at=at, pk__gt=key))[:most])


def rename(old: str, new: str, *, using: str) -> None:
    """Change holds of entities of a model that has another label now, so that these stay on hold."""
    rows = Hold.objects.using(using).filter(scope=Scope.ENTITY)
    for pk, names, own in list(rows.values_list("pk", "names", "entity_label")):
        renamed = [[new if label == old else label, key] for label, key in names]
        if renamed != names:
            rows.filter(pk=pk).update(names=renamed, entity_label=new if own == old else own)
