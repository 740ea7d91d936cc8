"""One loop of an attempt: which batch comes next, and how its progress is recorded."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db.models import Model

from timeline.exceptions import Discard, InvalidInput
from timeline.features.steps.batches import Batches, Sums, add, key_of
from timeline.models import StepKind, StepRecord
from timeline.payloads import check_json

if TYPE_CHECKING:
    from timeline.features.steps.recorder import StepRecorder
    from timeline.features.steps.store import NewStep


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """
    How far a loop has come.

    Args:
        total: How many rows there were when it began.
        after: Primary key of the last row that is done; None: no row is done yet.
        keys: Of the running batch; None: no batch is running, or its transaction shows whether it is done.
        seconds: How long the finished batches took.
        done_by: The attempt that did the last batch; 0: none is done.
    """

    total: int
    after: Any = None
    keys: list[Any] | None = None
    done: int = 0
    sums: Sums = field(default_factory=dict)
    seconds: float = 0.0
    done_by: int = 0

    @classmethod
    def of(cls, record: StepRecord, task: UUID) -> Course:
        """The progress that an earlier attempt at this task, or at an earlier revision, has recorded."""
        place = record.place or {}
        return cls(
            total=record.total or 0,
            after=place.get("after"),
            keys=place.get("keys"),
            done=record.done or 0,
            sums=record.result or {},
            seconds=record.seconds,
            done_by=record.attempt if record.by_task == task else 0,
        )

    def with_batch(self, keys: Sequence[Any], sums: Sums, *, seconds: float, by: int) -> Course:
        """The same loop after one more batch."""
        return replace(
            self,
            after=keys[-1],
            keys=None,
            done=self.done + len(keys),
            sums=sums,
            seconds=self.seconds + seconds,
            done_by=by,
        )

    def recorded(self, new: NewStep, *, is_over: bool = False) -> NewStep:
        """What is to be recorded of the loop."""
        place = {"after": self.after} if self.keys is None else {"after": self.after, "keys": self.keys}
        return new._replace(
            kind=StepKind.DONE if is_over else StepKind.LOOP,
            seconds=self.seconds,
            result=json.dumps(self.sums, ensure_ascii=False),
            place=None if is_over else json.dumps(place, ensure_ascii=False),
            done=self.done,
            total=self.total,
            done_by=self.done_by,
        )


class BatchLoop:
    """One loop of one attempt, batch by batch. ``record`` is the progress of earlier attempts; None: the loop begins."""

    def __init__(self, new: NewStep, record: StepRecord | None, batches: Batches[Any], recorder: StepRecorder) -> None:
        self._new = new
        self._batches = batches
        self._recorder = recorder
        self._course = Course(total=batches.count()) if record is None else Course.of(record, new.task)
        self._began = monotonic()
        self.first: Any = None  # Primary key of the first row of the running batch, deleted or not, as JSON.

    @property
    def sums(self) -> Sums:
        """The sums of the finished batches."""
        return self._course.sums

    def take_in_transaction(self, body: Callable[[list[Model]], object]) -> bool:
        """Do the next batch in a transaction, with its record; False: there was none any more, and that is recorded."""
        self._began, course, is_over = monotonic(), self._course, False

        def turn() -> NewStep:
            nonlocal course, is_over
            keys, rows = self._next()
            if is_over := not keys:
                return course.recorded(self._new, is_over=True)
            course = self._with(keys, body(rows)) if rows else self._without(keys)
            return course.recorded(self._new)

        sums = self._recorder.loop_in_transaction(turn)
        self._course = replace(course, sums=sums)
        return not is_over

    def begin_batch(self) -> list[Model]:
        """
        Give the batch that an earlier attempt has left half done, or the next one; if empty, the end of the loop is recorded.
        Its keys are recorded first, so that a repeated batch has the same rows.
        """
        while True:
            self._began = monotonic()
            was_under_way = self._course.keys is not None
            keys, rows = self._next()
            if not was_under_way:
                self._course = replace(self._course, keys=keys or None)
                self._recorder.keep_place(self._course.recorded(self._new, is_over=not keys), by_us=False)
            elif not rows:
                self._course = self._without(keys)
                continue
            return rows

    def end_batch(self, result: object) -> None:
        """
        Record that the running batch is done.

        Raises:
            Discard: if the step returned no sums: its work is done, and another try would do it again.
            LeaseLost: if the attempt is not its worker's any more.
        """
        try:
            course = self._with(self._course.keys or [], result)
        except InvalidInput as error:
            raise Discard(error.in_english()) from error
        self._course = replace(course, sums=self._recorder.keep_place(course.recorded(self._new)))

    def _next(self) -> tuple[list[Any], list[Model]]:
        """The keys of the next batch, none at the end, and those of its rows that still exist."""
        keys = self._course.keys
        if keys is not None:
            rows = self._batches.those(keys)
        else:
            rows = self._batches.after(self._course.after)
            keys = [key_of(row) for row in rows]
        self.first = keys[0] if keys else None
        return keys, rows

    def _with(self, keys: Sequence[Any], result: object) -> Course:
        sums = add(self.sums, result, step=self._new.name)
        check_json(f"result of step {self._new.name}", sums)
        return self._course.with_batch(keys, sums, seconds=monotonic() - self._began, by=self._new.attempt)

    def _without(self, keys: Sequence[Any]) -> Course:
        """The loop after a batch whose rows are all deleted: it is skipped, and no attempt has done it."""
        return self._course.with_batch(keys, self.sums, seconds=0.0, by=self._course.done_by)
