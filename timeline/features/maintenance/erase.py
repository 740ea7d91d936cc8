"""Erase: blank the data about an entity in all rows. Times, states, codes and keys stay, so its history can still be seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from timeline.definition.names import ERASED
from timeline.exceptions import InvalidInput
from timeline.hooks import hooks
from timeline.ids import uuid7
from timeline.lifecycle import FINAL, OPEN, Reason, ReasonCode, RunEnd
from timeline.models import (
    EntityRef,
    Event,
    LogEntry,
    RunEntry,
    ScheduledTask,
    StepKind,
    StepRecord,
    Taking,
    TimelineRun,
)
from timeline.models.entities import label_of
from timeline.models.kin import about_entity
from timeline.models.task_records import origins_of, recorded_by
from timeline.operations.cancel import cancel_all
from timeline.operations.current import running
from timeline.operations.leave import end_runs
from timeline.payloads import clip
from timeline.signals import entity_erased
from timeline.store.changes import MAX_ACTOR, MAX_REASON
from timeline.store.locks import lock_runs
from timeline.store.transactions import atomic

BATCH: Final = 500
LINKS: Final = 4  # How often what begins after ended runs is ended, too. A chain of ``after_run`` has two links.

# The details of a log entry from which a task is replayed. None of them was written by a handler or a person.
KEPT: Final = frozenset({"scheduled_at", "scheduled_at_before", "passing", "grace", "until", "resend"})


@dataclass
class Erased:
    """How many rows were blanked: name of the kind → how many."""

    rows: dict[str, int] = field(default_factory=dict)

    def count(self, model: type, number: int) -> None:
        """Add a number of rows."""
        if number:
            name = label_of(model).partition(".")[2]
            self.rows[name] = self.rows.get(name, 0) + number

    def __add__(self, other: Erased) -> Erased:
        names = dict.fromkeys([*self.rows, *other.rows])
        return Erased({name: self.rows.get(name, 0) + other.rows.get(name, 0) for name in names})

    @property
    def total(self) -> int:
        """How many rows of all kinds."""
        return sum(self.rows.values())


def erasable(ref: EntityRef, *, using: str) -> dict[str, int]:
    """Count what ``erase`` handles: open tasks and runs, which prevent it, and ended tasks, runs and events."""
    about = about_entity(ref, using=using)
    tasks, runs = ScheduledTask.objects.using(using).filter(about), TimelineRun.objects.using(using).filter(about)
    return {
        "open_tasks": tasks.filter(state__in=OPEN).count(),
        "open_runs": runs.filter(ended_at=None).count(),
        "tasks": tasks.filter(state__in=FINAL).count(),
        "runs": runs.exclude(ended_at=None).count(),
        "events": Event.objects.using(using).filter(about).exclude(name=ERASED).count(),
    }


def erase(*, ref: EntityRef, reason: Reason, cancel: bool = False, now: datetime, using: str) -> Erased:
    """
    Blank the data about an entity, under every name of its family: payloads, results, errors, reasons and actors, texts of the
    log, parameters of runs, results of steps, and payloads of events. The rows that are left say that something happened, when,
    and how it ended.

    Each transaction handles 500 tasks. Blank rows are not handled again, so this can be called again after a crash.

    Args:
        ref: The entity; it need not exist any more.
        reason: Why, and who decided; kept in an event, ``timeline.erased``.
        cancel: Whether to cancel open tasks and end open runs first.

    Returns:
        How many rows were blanked.

    Raises:
        InvalidInput: naming ``entity``, if a task or run is open, even if it was made during this call: rows that are blank by
            then stay so. Also if a handler of its own calls this: nothing is changed then.
    """
    if not ref.label:
        raise InvalidInput("entity", _("the system is nobody."), _("Name an entity."))
    about = about_entity(ref, using=using)
    refuse_own([ref], using=using)
    if cancel:
        _end_all(ref, about, reason, now, using)
    _refuse_open(about, using)
    work = _Work(ref, about, reason, now, using)
    _blank_tasks(work)
    _blank_runs(work)
    _blank(Event, work, about & ~Q(name=ERASED), {"payload": {}, "actor": ""})
    for model, blank in hooks().blanks:
        _blank(model, work, about, blank)
    with work.portion():
        entity_erased.send(sender=Event, entity_ref=ref, done=work.done, using=using)
    _refuse_open(about, using)
    return work.done


@dataclass
class _Work:
    ref: EntityRef
    about: Q
    reason: Reason
    now: datetime
    using: str
    done: Erased = field(default_factory=Erased)

    @contextmanager
    def portion(self) -> Iterator[None]:
        """A transaction. The first one that blanks a row also records the event, so that a crash cannot leave the event out."""
        was_begun = self.done.total > 0
        with atomic(using=self.using):
            yield
            if self.done.total and not was_begun:
                _record(self.ref, self.reason, self.now, self.using)


def refuse_open(refs: Iterable[EntityRef], *, using: str) -> None:
    """Raise ``InvalidInput`` for ``entity`` if any of them has an open task or run, before one is blanked."""
    for ref in refs:
        _refuse_open(about_entity(ref, using=using), using)


def refuse_own(refs: Iterable[EntityRef], *, using: str) -> None:
    """Raise ``InvalidInput`` for ``entity`` if a task that is being run here is about one of them, before any is changed."""
    if running():
        for ref in refs:
            tasks = ScheduledTask.objects.using(using).filter(about_entity(ref, using=using), pk__in=running())
            if tasks.exists():
                problem = _("it is erased by its own task, which cannot be blanked while it runs.")
                raise InvalidInput("entity", problem, _("Erase it in a task of a system timeline."))


def _end_all(ref: EntityRef, about: Q, reason: Reason, now: datetime, using: str) -> None:
    """
    Cancel open tasks; then end runs that are still open as they wait. Runs that begin after these (``after_run``) end with
    them, in the same transaction, so that nobody runs what they would do.
    """
    with atomic(using=using):
        for _link in range(LINKS):
            _end_present(ref, about, reason, now, using)
            if not TimelineRun.objects.using(using).open().filter(about).exists():
                return


def _end_present(ref: EntityRef, about: Q, reason: Reason, now: datetime, using: str) -> None:
    cancel_all(ref=ref, reason=Reason(ReasonCode.OPERATOR, reason.text, reason.actor), now=now, using=using)
    runs = list(TimelineRun.objects.using(using).open().filter(about).only("entity_label", "entity_id"))
    locked = lock_runs([run.pk for run in runs], {run.entity_ref for run in runs}, fresh=True, using=using)
    still = [run for run in locked.runs if run.is_open]
    end_runs(still, RunEnd.LEFT, reason=Reason(ReasonCode.EXIT, reason.text, reason.actor), now=now, using=using)


def _refuse_open(about: Q, using: str) -> None:
    tasks = ScheduledTask.objects.using(using).filter(about, state__in=OPEN).count()
    runs = TimelineRun.objects.using(using).open().filter(about).count()
    if tasks or runs:
        problem = _("what is open of it needs what it holds: tasks %(tasks)d, runs %(runs)d.")
        raise InvalidInput("entity", problem, _("Cancel them, or say cancel."), tasks=tasks, runs=runs)


def _blank_tasks(work: _Work) -> None:
    """Blank ended tasks, with their logs and steps: 500 tasks in each transaction."""
    using, done = work.using, work.done
    tasks = ScheduledTask.objects.using(using).filter(work.about, state__in=FINAL)
    for ids in _portions(tasks):
        with work.portion():
            entries = LogEntry.objects.using(using).filter(task__in=ids)
            _blank_details(entries, done, using)
            done.count(LogEntry, _said(entries, {"reason": "", "actor": ""}))
            previous = dict(tasks.filter(pk__in=ids).values_list("pk", "previous_id"))
            origins = set(origins_of(previous, using=using).values())  # An index finds the records by their origins.
            steps = StepRecord.objects.using(using).filter(recorded_by(ids), origin__in=origins)
            steps = steps.exclude(kind__in=_WAITS)
            done.count(StepRecord, _said(steps, _STEP, digest=""))
            done.count(ScheduledTask, _said(tasks.filter(pk__in=ids), _TASK))
            Taking.objects.using(using).filter(item__in=ids).delete()


_TASK: Final[dict[str, Any]] = {"payload": {}, "result": None, "error": "", "reason": "", "actor": ""}
_STEP: Final[dict[str, Any]] = {"result": None, "place": None}
_WAITS: Final = (StepKind.WAIT, StepKind.OVER)  # These records hold ids and keys of events, and no texts.


def _blank_details(entries: QuerySet[LogEntry], done: Erased, using: str) -> None:
    changed = []
    for entry in entries.exclude(detail={}).only("pk", "detail"):
        kept = {name: value for name, value in entry.detail.items() if name in KEPT}
        if kept != entry.detail:
            entry.detail = kept
            changed.append(entry)
    LogEntry.objects.using(using).bulk_update(changed, ["detail"], batch_size=BATCH)
    done.count(LogEntry, len(changed))


def _blank_runs(work: _Work) -> None:
    using, done = work.using, work.done
    runs = TimelineRun.objects.using(using).filter(work.about).exclude(ended_at=None)
    for ids in _portions(runs):
        with work.portion():
            done.count(RunEntry, _said(RunEntry.objects.using(using).filter(run__in=ids), {"actor": ""}))
            # A run must have an end reason. If a person wrote it, it is replaced by the code.
            written = runs.filter(pk__in=ids, end_code=RunEnd.LEFT).exclude(end_reason=str(RunEnd.LEFT))
            done.count(TimelineRun, written.update(end_reason=str(RunEnd.LEFT)))
            done.count(TimelineRun, _said(runs.filter(pk__in=ids), {"params": {}}))
            Taking.objects.using(using).filter(item__in=ids).delete()


def _blank(model: Any, work: _Work, which: Q, blank: Mapping[str, Any]) -> None:
    rows = model.objects.using(work.using).filter(which)
    for ids in _portions(rows):
        with work.portion():
            work.done.count(model, _said(rows.filter(pk__in=ids), blank))


def _portions(rows: QuerySet[Any]) -> Iterator[Sequence[UUID]]:
    """Primary keys of rows, in their order, in portions."""
    rows = rows.order_by("pk").values_list("pk", flat=True)
    ids = list(rows[:BATCH])
    while ids:
        yield ids
        ids = list(rows.filter(pk__gt=ids[-1])[:BATCH])


def _said(rows: QuerySet[Any], blank: Mapping[str, Any], **with_them: Any) -> int:
    """Blank the rows that have any value in these columns, and write further columns with them. Gives how many rows."""
    silent = Q(**{name: value for name, value in blank.items() if value is not None})
    silent &= Q(**{f"{name}__isnull": True for name, value in blank.items() if value is None})
    return rows.exclude(silent).update(**blank, **with_them)


def _record(ref: EntityRef, reason: Reason, now: datetime, using: str) -> None:
    Event.objects.using(using).create(
        id=uuid7(),
        entity_label=ref.label,
        entity_id=ref.id,
        name=ERASED,
        payload={"reason": clip(reason.text, MAX_REASON)},
        actor=clip(reason.actor, MAX_ACTOR),
        occurred_at=now,
        recorded_at=now,
    )
