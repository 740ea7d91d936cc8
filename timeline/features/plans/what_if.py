"""Try: make changes, look at their effects, and undo them. Nothing of it is ever committed, or told to anybody."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import DataError, IntegrityError, transaction
from django.db.models import Model, QuerySet
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext

from timeline.dialects import Among
from timeline.exceptions import InvalidInput
from timeline.features.machines.deadlines import deadlines_kept
from timeline.features.waits.reading import waits_in_words
from timeline.models import EntityRef, ScheduledTask, TimelineRun, exact_ref, model_of
from timeline.models.entities import kinds_of
from timeline.operations.emit import emit
from timeline.operations.reconcile import reconcile
from timeline.operations.start import start
from timeline.operations.unknown_events import refuse_unknown_event
from timeline.reading.explanation import why
from timeline.reading.in_the_way import in_the_way
from timeline.reading.outlook import Ahead, ahead_of
from timeline.reading.reason_texts import recall
from timeline.registry import registry
from timeline.store.locks import missing
from timeline.store.transactions import atomic
from timeline.timing import check_time

if TYPE_CHECKING:
    from timeline.models.run import TimelineRunQuerySet
    from timeline.models.task import ScheduledTaskQuerySet


Seen = TypeVar("Seen")

MOST_OPEN: Final = 1000  # Tasks of an entity with which people may try something.

MOST_SHOWN: Final = 200  # Effects that a face shows.


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """
    What to try: values of fields to which tasks are anchored; a run, as for ``start``; an event. Empty: none.

    ``is_asked``: the event comes from somebody who may say it only because a machine asks them.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    timeline: str = ""
    key: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    started_at: datetime | None = None
    event: str = ""
    payload: dict[str, Any] = field(default_factory=dict)
    is_asked: bool = False


def try_out(
    look: Callable[[], Seen],
    *,
    ref: EntityRef,
    change: Tried,
    now: datetime,
    using: str,
) -> tuple[Seen, Seen]:
    """
    Look before and after fields of an entity are changed, a run is started and an event is emitted; then undo everything. The
    changes are made by the usual code, so the effects are the same as in earnest: for that, it takes the same locks, until they
    are undone. What takes long about ``look`` is for the caller to do afterwards.

    Args:
        look: Called before the transaction, and in it after the changes; reads the database.
        ref: The entity.
        change: The changes, made in the order above.

    Returns:
        What ``look`` gave before, and after.

    Raises:
        InvalidInput, DateOutOfRange, NaiveDatetime: naming the field.
        WrongEntity: if the entity is not in this database.
        UnknownEvent: if no timeline knows the event, unless ``TIMELINE["STRICT_EVENTS"]`` is off.
        Everything that ``start`` and ``emit`` raise.
    """
    model = model_of(ref.label) if exact_ref(*ref) else None
    checked = {name: _checked(ref, model, name, value) for name, value in change.fields.items()}
    entities = model._base_manager.using(using).filter(pk=ref.id) if model is not None else None
    if entities is None or not entities.exists():
        raise missing(ref, using)
    if change.event:
        refuse_unknown_event(change.event, [ref.label])
    before = look()  # Where one writes at a time, others may write meanwhile.
    with atomic(using=using):
        if checked:
            _set(entities, checked)
            reconcile(entity=ref, now=now, using=using)
        if change.timeline:
            run: dict[str, Any] = {"key": change.key, "params": change.params, "started_at": change.started_at}
            start(timeline=change.timeline, entity=ref, now=now, using=using, **run)
        if change.event:
            given: dict[str, Any] = {"key": "", "payload": change.payload, "actor": "", "occurred_at": None}
            kept = deadlines_kept(change.event, ref, now=now, using=using) if change.is_asked else nullcontext()
            with kept:
                emit(name=change.event, entity=ref, now=now, using=using, **given)
        after = look()
        transaction.set_rollback(True, using=using)
    return before, after


def refuse_many(ref: EntityRef, *, using: str) -> None:
    """Refuse an entity with more than ``MOST_OPEN`` open tasks: who writes about it would wait. Raises ``InvalidInput``."""
    if ScheduledTask.objects.using(using).for_entity(ref).open()[MOST_OPEN : MOST_OPEN + 1].exists():
        problem, remedy = _("it has more than %(most)d open tasks."), _("Try it in code, with what_if.")
        raise InvalidInput("entity", problem, remedy, most=MOST_OPEN)


def anchors_of(label: str) -> list[str]:
    """Fields of this kind of entity that tasks are anchored to."""
    kinds = kinds_of(label)
    return sorted({name for known in registry if known.label in kinds for name in known.anchor_fields})


def not_anchored(name: str, names: Iterable[str]) -> InvalidInput:
    """The error for a field to which no task is anchored. It names the fields to which tasks are anchored."""
    known = ", ".join(names)
    if not known:
        return InvalidInput(name, _("no task is anchored to it."), _("Leave it out."))
    return InvalidInput(name, _("no task is anchored to it."), _("Give one of %(names)s."), names=known)


def _checked(ref: EntityRef, model: type[Model] | None, name: str, value: Any) -> Any:
    names = anchors_of(ref.label)
    if model is None or name not in names:
        raise not_anchored(name, names)
    try:
        column: Any = model._meta.get_field(name)
        read = column.to_python(value)
    except ValidationError as error:
        remedy = _("Give a date, or a time with its zone.")
        raise InvalidInput(name, "%(error)s", remedy, error=" ".join(error.messages)) from None
    if read is None and not column.null:
        raise InvalidInput(name, _("must not be empty."), _("Give a date, or a time with its zone."))
    return check_time(name, read) if isinstance(read, datetime) else read


def _set(entities: QuerySet[Model], values: Mapping[str, Any]) -> None:
    """Change the fields; a value that the host's table refuses is an error of the caller."""
    try:
        entities.update(**values)
    except (IntegrityError, DataError) as error:
        problem, remedy = _("its table does not take that (%(error)s)."), _("Give another one.")
        said = str(error).partition("\n")[0]
        raise InvalidInput(", ".join(sorted(values)), problem, remedy, error=said) from error


class Becomes(StrEnum):
    """How a task that is ahead would change."""

    NEW = "new"
    MOVED = "moved"
    GONE = "gone"
    SAME = "same"


class Effect(NamedTuple):
    """
    The effect on one task that is ahead, or would be; its key may say at its end which of many it is.

    ``at`` and ``then_at``: when it is due or expected, and would be; None: it is not ahead, or nobody can say. ``why``: why it
    would be gone. ``row``: after the change; None: it has none, or would have none. Never save it. ``stands``: until when it
    would be on hold, or wait, in words; empty: neither.
    """

    task_key: str
    at: datetime | None
    then_at: datetime | None
    change: Becomes
    is_foreseen: bool
    why: str = ""
    row: ScheduledTask | None = None
    stands: str = ""

    @property
    def words(self) -> str:
        """The effect in words, for people."""
        said = {
            Becomes.NEW: pgettext("timeline", "new"),
            Becomes.MOVED: pgettext("timeline", "moved"),
            Becomes.GONE: pgettext("timeline", "called off"),
            Becomes.SAME: pgettext("timeline", "as it is"),
        }[self.change]
        return f"{said}: {why}" if (why := self.why or self.stands) else said


@dataclass(frozen=True)
class Snapshot:
    """
    What an entity has ahead: open tasks, with those open in an earlier snapshot; until when they are on hold, in words; what
    was read to foresee follow-ups, which is done when they are asked for: by then, nothing is locked any more.
    """

    rows: dict[UUID, ScheduledTask]
    ahead: Ahead
    now: datetime
    held: dict[UUID, str]

    @cached_property
    def foreseen(self) -> dict[tuple[UUID, str], list[datetime | None]]:
        """Times of follow-ups by run and task key."""
        expected: dict[tuple[UUID, str], list[datetime | None]] = defaultdict(list)
        for run, outlook in self.ahead.foresee(now=self.now):
            expected[run.pk, outlook.task_key].append(outlook.expected_at)
        return dict(expected)


def looker(
    ref: EntityRef,
    *,
    tasks: ScheduledTaskQuerySet | None = None,
    seen: Callable[[TimelineRunQuerySet], Iterable[TimelineRun]] | None = None,
    now: datetime,
    using: str,
) -> Callable[[], Snapshot]:
    """Make a function that takes snapshots, which also have the tasks of earlier ones; ``seen`` picks runs. None: all."""
    known = set[UUID]()

    def look() -> Snapshot:
        every = ScheduledTask.objects.using(using) if tasks is None else tasks
        found = snapshot(ref, known=known, tasks=every, seen=seen or list, now=now, using=using)
        known.update(found.rows)
        return found

    return look


def snapshot(
    ref: EntityRef,
    *,
    known: Iterable[UUID] = (),
    tasks: ScheduledTaskQuerySet,
    seen: Callable[[TimelineRunQuerySet], Iterable[TimelineRun]],
    now: datetime,
    using: str,
) -> Snapshot:
    """Take a snapshot, with tasks that are ``known`` in any state. Six statements, and those that read entities."""
    rows = {task.pk: task for task in tasks.for_entity(ref).open().select_related("run")}
    ended = [key for key in known if key not in rows]
    rows |= {task.pk: task for task in tasks.filter(Among(ended)).select_related("run")} if ended else {}
    recall([rows[key] for key in ended if key in rows], using=using)
    runs = TimelineRun.objects.using(using).open().for_entity(ref)
    held = in_the_way(rows.values(), using=using)
    return Snapshot(rows, ahead_of(seen(runs), using=using), now, held)


def effects(before: Snapshot, after: Snapshot) -> list[Effect]:
    """List all tasks with their change, if any, by the time after it; what would be gone, by its own time."""
    found = [*_of_rows(before, after), *_of_foreseen(before, after)]
    return sorted(found, key=lambda effect: (_moment(effect), effect.task_key))


def foremost(found: list[Effect], most: int) -> list[Effect]:
    """So many of them at most: those that change first, and in the order they have."""
    changed = [effect for effect in found if effect.change != Becomes.SAME][:most]
    same = [effect for effect in found if effect.change == Becomes.SAME][: most - len(changed)]
    return sorted([*changed, *same], key=lambda effect: (_moment(effect), effect.task_key))


def _of_rows(before: Snapshot, after: Snapshot) -> Iterable[Effect]:
    carried_on = {task.previous_id: task for task in after.rows.values() if task.is_open and task.previous_id}
    seen = set()
    for key, task in before.rows.items():
        then = after.rows.get(key)
        if then is None or not then.is_open:
            told, then = then, carried_on.get(key)
        if then is None:
            said = why(told) if told is not None else ""
            yield Effect(task.full_key, task.scheduled_at, None, Becomes.GONE, is_foreseen=False, why=said, row=told)
            continue
        seen.add(then.pk)
        moved = _moved(task.full_key, task.scheduled_at, then.scheduled_at, is_foreseen=False, row=then)
        yield moved._replace(stands=_stands(then, after))
    for key, task in after.rows.items():
        if task.is_open and key not in seen:
            new = Effect(task.full_key, None, task.scheduled_at, Becomes.NEW, is_foreseen=False, row=task)
            yield new._replace(stands=_stands(task, after))


def _stands(task: ScheduledTask, after: Snapshot) -> str:
    return "; ".join(filter(None, [after.held.get(task.pk, ""), waits_in_words(task)]))


def _of_foreseen(before: Snapshot, after: Snapshot) -> Iterable[Effect]:
    for run, key in before.foreseen.keys() | after.foreseen.keys():
        old, new = (deque(side.foreseen.get((run, key), [])) for side in (before, after))
        while old and new:
            yield _moved(key, old.popleft(), new.popleft(), is_foreseen=True)
        yield from (Effect(key, at, None, Becomes.GONE, is_foreseen=True) for at in old)
        yield from (Effect(key, None, at, Becomes.NEW, is_foreseen=True) for at in new)


def _moved(
    key: str, at: datetime | None, then_at: datetime | None, *, is_foreseen: bool, row: ScheduledTask | None = None
) -> Effect:
    change = Becomes.SAME if at == then_at else Becomes.MOVED
    return Effect(key, at, then_at, change, is_foreseen=is_foreseen, row=row)


def _moment(effect: Effect) -> tuple[bool, float]:
    at = effect.then_at or effect.at
    return (at is None, at.timestamp() if at is not None else 0.0)
