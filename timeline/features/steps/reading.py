"""The steps of a task, as faces show them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db.models import Count, Q, Subquery
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from timeline.features.waits.declaration import ASLEEP, PREFIX
from timeline.models import ScheduledTask, StepKind, StepRecord
from timeline.models.task_records import origins_of
from timeline.timing import told_time
from timeline.told_times import how_long

MOST_TOLD: Final = 20  # How many steps are told in sentences, the latest ones.
MOST_READ: Final = 200  # How many are read, the latest ones.
_ENDED: Final = (StepKind.DONE, StepKind.OVER)


class StepLine(NamedTuple):
    """A step that is done or begun, or a running loop; or a wait; or a note of the progress that the handler reports."""

    name: str  # With its key.
    kind: StepKind
    task_id: UUID  # The revision that did it.
    attempt: int  # Of that revision; 0: no batch of the loop is done.
    recorded_at: datetime  # Story time.
    seconds: float | None  # None: the end is not known, or a person said that the step happened.
    result: Any  # JSON; for a loop the sums so far, for a note its text; None as well if it was not asked for.
    done: int | None  # For a loop and a note: how many; for a wait that is over: 1 if an event came, or 0.
    total: int | None  # Of how many; None: nobody knows.

    @property
    def is_in_doubt(self) -> bool:
        """Whether nobody knows how it ended. While an attempt runs, the step may still be running."""
        return self.kind == StepKind.BEGUN

    @property
    def is_sleep(self) -> bool:
        """Whether it is no step, but a sleep of the handler."""
        return self.name.startswith(ASLEEP)


class StepLines(list[StepLine]):
    """Steps in the order of their records. ``left_out``: so many earlier ones are not among them."""

    left_out = 0


def steps_of_task(task: ScheduledTask, *, using: str, results: bool = True) -> StepLines:
    """
    The steps of a task and of its earlier revisions, in the order of their records: of very many the latest, and all that have
    not ended. Results have up to 64 KiB each.

    No query for a task that nobody has started; else one, and one more if it has an earlier revision.
    """
    if not task.attempt and task.previous_id is None:
        return StepLines()
    origin = origins_of({task.pk: task.previous_id}, using=using)[task.pk]
    every = StepRecord.objects.using(using).filter(origin=origin)
    latest = every.order_by("-pk").values("pk")[:MOST_READ]
    whole = every.order_by().values("origin").annotate(count=Count("pk")).values("count")
    asked = every.filter(Q(pk__in=latest) | ~Q(kind__in=_ENDED)).annotate(whole=Subquery(whole)).order_by("pk")
    records = list(asked if results else asked.defer("result"))
    lines = StepLines(_line(record, results) for record in records)
    lines.left_out = records[0].whole - len(records) if records else 0
    return lines


def _line(record: StepRecord, results: bool) -> StepLine:
    return StepLine(
        name=record.name,
        kind=StepKind(record.kind),
        task_id=record.by_task,
        attempt=record.attempt,
        recorded_at=record.recorded_at,
        seconds=record.seconds or None,
        result=record.result if results else None,
        done=record.done,
        total=record.total,
    )


def told_steps(steps: StepLines, *, of: UUID) -> Iterator[str]:
    """Tell the progress that a handler reports, and the steps, one in each sentence; of many the latest, and those in doubt."""
    for note in steps:
        if note.kind == StepKind.NOTE:
            yield _told(note, of)
    taken = [step for step in steps if step.kind != StepKind.NOTE]
    told = [step for place, step in enumerate(taken) if step.is_in_doubt or place >= len(taken) - MOST_TOLD]
    if left_out := len(taken) + steps.left_out - len(told):
        said = ngettext("%(count)d step more is done, earlier.", "%(count)d steps more are done, earlier.", left_out)
        yield said % {"count": left_out}
    for step in told:
        yield _told(step, of)


def _told(step: StepLine, of: UUID) -> str:
    if step.kind == StepKind.NOTE:
        return _("It said on %(at)s that %(share)s is done.") % {
            "at": told_time(step.recorded_at),
            "share": share(step),
        }
    if step.kind in (StepKind.WAIT, StepKind.OVER):
        return _told_wait(step)
    if step.kind == StepKind.LOOP:
        known = {"step": step.name, "share": share(step), "at": told_time(step.recorded_at)}
        return _("Step %(step)s: %(share)s done by %(at)s.") % known
    where = _("in attempt %(number)s") if step.task_id == of else _("in attempt %(number)s of an earlier revision")
    known = {"step": step.name, "where": where % {"number": step.attempt}, "at": told_time(step.recorded_at)}
    if step.is_in_doubt:
        return _("Step %(step)s: begun %(where)s on %(at)s, its end is not known.") % known
    if step.seconds is None:
        return _("Step %(step)s: done %(where)s on %(at)s.") % known
    return _("Step %(step)s: done %(where)s on %(at)s, %(took)s.") % {**known, "took": how_long(step.seconds)}


def _told_wait(step: StepLine) -> str:
    if step.is_sleep:
        slept = {"name": step.name.removeprefix(ASLEEP), "at": told_time(step.recorded_at)}
        if step.kind == StepKind.WAIT:
            return _("Sleep %(name)s: since %(at)s.") % slept
        return _("Sleep %(name)s: ended on %(at)s, %(took)s.") % {**slept, "took": how_long(step.seconds or 0)}
    known = {"events": step.name.removeprefix(PREFIX), "at": told_time(step.recorded_at)}
    if step.kind == StepKind.WAIT:
        return _("It waits for %(events)s since %(at)s.") % known
    if step.done:
        return _("Its wait for %(events)s ended on %(at)s: it came.") % known
    return _("Its wait for %(events)s ended on %(at)s: nothing came.") % known


def share(step: StepLine) -> str:
    """The progress of a loop, or of a report: "800 of 1,000"; empty for other steps."""
    if step.done is None or step.kind == StepKind.OVER:
        return ""
    done = number_format(step.done, force_grouping=True)
    if step.total is None:
        return done
    return _("%(done)s of %(total)s") % {"done": done, "total": number_format(step.total, force_grouping=True)}
