"""Record the steps of an attempt, alone or with others. If an answer of the database is lost, ask what it has."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import DatabaseError, InterfaceError

from timeline.clocks import CountedClock
from timeline.dialects import dialect_of
from timeline.engine.execute import hooks_apart
from timeline.exceptions import Discard, InvalidInput, LeaseLost
from timeline.features.steps.declaration import digest_of
from timeline.features.steps.store import (
    NewStep,
    Stored,
    finish_step,
    is_its_workers,
    record_place,
    record_step,
    record_steps,
    withdraw_step,
)
from timeline.models import StepKind, StepRecord
from timeline.payloads import json_text
from timeline.store.database_errors import catching, drop_if_lost, may_be_written_later
from timeline.store.transactions import atomic

if TYPE_CHECKING:
    from timeline.engine.attempts import Attempt

MOST: Final = 100
Places = Mapping[tuple[UUID, str], Stored]
_Asked = tuple[NewStep, asyncio.Future[Stored | None]]


class _RecordedBefore(Exception):
    """Another process has recorded this step meanwhile: the writes of this one are undone."""


class StepRecorder:
    """Records the steps of one attempt."""

    def __init__(self, attempt: Attempt, using: str) -> None:
        self.has_recorded = False  # Whether this attempt has done a step, so that failures are counted anew.
        self.in_doubt = ""  # The step that this attempt began, and of which nobody knows whether it happened.
        self._task = attempt.task
        self._origin = attempt.idempotency_key
        self._code = attempt.definition.kept_code
        self._begun_at = attempt.now
        self._writer = attempt.step_writer
        self._using = using
        self.now = CountedClock(attempt.now, using)

    def new(self, name: str, given: dict[str, Any]) -> NewStep:
        """A step that is to be done now."""
        return NewStep(
            origin=self._origin,
            name=name,
            task=self._task.id,
            attempt=self._task.attempt,
            digest=digest_of(given),
            code=self._code,
            at=self._begun_at,
        )

    def do_in_transaction(self, new: NewStep, body: Callable[[], Any]) -> Any:
        """
        Write the step's work and its record in one transaction: the lock of the task's row comes last. ``InvalidInput`` if the
        return value is no JSON; ``LeaseLost`` if the attempt is not ours any more.
        """
        began = monotonic()
        try:
            with atomic(using=self._using, durable=True):
                with hooks_apart([new.task], using=self._using):
                    ended = self._ended(new, began, _as_text(new.name, body()))
                stored = record_step(ended, using=self._using, last=True)
                if stored is None:
                    raise _RecordedBefore
        except _RecordedBefore:
            return self._adopt(new)
        except (DatabaseError, InterfaceError) as error:
            if not may_be_written_later(error):
                raise
            drop_if_lost(error, self._using)  # Perhaps only the answer to the COMMIT was lost, and the COMMIT was done.
            if self._recorded(new) is None:
                raise
            return self._adopt(new)
        return self._done(stored)

    def begin(self, new: NewStep) -> None:
        """Record that a step begins that may be called only once. If the answer is lost, ask whether that is recorded."""
        stored = self._written(record_step, new._replace(kind=StepKind.BEGUN, at=self.now()))
        if stored is None and not (self._is_ours(self._recorded(new), new) and is_its_workers(new, using=self._using)):
            raise LeaseLost(new.task, new.attempt)
        self.in_doubt = new.name

    def withdraw(self, new: NewStep) -> None:
        """Delete the record of a step that was begun: it is known that nothing happened."""
        withdraw_step(new, using=self._using)
        self.in_doubt = ""

    def happened(self, new: NewStep, began: float, result: object) -> NewStep:
        """
        The step as it is to be recorded after it has happened; it began at this ``monotonic()`` time. ``Discard`` if the
        result is no JSON: the step's work is done, and another try would do it again.
        """
        try:
            return self._ended(new, began, _as_text(new.name, result))
        except InvalidInput as error:
            raise Discard(error.in_english()) from error

    async def keep_with_others(self, ended: NewStep) -> Any:
        """``keep`` for an async handler, together with steps of others; a step that misses this is recorded by itself."""
        stored = None if self._writer is None else await self._writer.write(ended)
        return await sync_to_async(self.keep)(ended) if stored is None else self._done(stored)

    def keep(self, ended: NewStep, *, once: bool = False) -> Any:
        """
        Record a step that has happened, and give its result as a later attempt will read it; ``LeaseLost`` if it is not ours.
        If the database fails just now, try once more on a new connection. ``once`` is whether its beginning was recorded.
        """
        stored = self._written(finish_step if once else record_step, ended)
        given = self._adopt(ended) if stored is None else self._done(stored)
        if self.in_doubt == ended.name:
            self.in_doubt = ""
        return given

    def keep_place(self, place: NewStep, *, by_us: bool = True) -> Any:
        """
        Record the progress of a loop, by itself, and give the sums; ``LeaseLost`` if the attempt is not ours any more. If the
        database fails just now, try once more on a new connection. ``by_us``: this attempt has done a batch.
        """
        return self._come_to(place, self._written(record_place, place._replace(at=self.now())), by_us=by_us)

    def loop_in_transaction(self, turn: Callable[[], NewStep]) -> Any:
        """
        Write a batch's work and the progress of its loop in one transaction: the lock of the task's row comes last.
        ``InvalidInput`` if the batch made no sums; ``LeaseLost`` if the attempt is not ours any more.
        """
        place: NewStep | None = None
        task = self._task
        try:
            with atomic(using=self._using, durable=True):
                with hooks_apart([task.id], using=self._using):
                    place = turn()._replace(at=self.now())
                stored = record_place(place, using=self._using)
                if stored is None:
                    raise LeaseLost(task.id, task.attempt)
        except (DatabaseError, InterfaceError) as error:
            if place is None or not may_be_written_later(error):
                raise
            drop_if_lost(error, self._using)  # Perhaps only the answer to the COMMIT was lost, and the COMMIT was done.
            record = self._recorded(place)
            ours = self._is_ours(record, place) and place.place is not None
            if record is None or not ours or record.place != json.loads(place.place or ""):
                raise
            stored = Stored(json.dumps(record.result))
        return self._come_to(place, stored, by_us=True)

    def _come_to(self, place: NewStep, stored: Stored | None, *, by_us: bool) -> Any:
        if stored is None:
            raise LeaseLost(place.task, place.attempt)
        self.has_recorded |= by_us
        return json.loads(stored.result or "null")

    def _written(self, write: Callable[..., Stored | None], step: NewStep) -> Stored | None:
        try:
            return write(step, using=self._using)
        except (DatabaseError, InterfaceError) as error:
            drop_if_lost(error, self._using)
            if not may_be_written_later(error):
                raise
            return write(step, using=self._using)

    def _done(self, stored: Stored) -> Any:
        self.has_recorded = True
        return None if stored.result is None else json.loads(stored.result)

    def _adopt(self, new: NewStep) -> Any:
        """The existing record of this step: from a statement of ours whose answer was lost, or from another attempt."""
        record = self._recorded(new)
        if record is None or record.kind == StepKind.BEGUN or not self._is_ours(record, new):
            raise LeaseLost(new.task, new.attempt)
        self.has_recorded = True
        return record.result

    def _is_ours(self, record: StepRecord | None, new: NewStep) -> bool:
        """Whether this attempt has recorded it: within an attempt, a name is used only once."""
        return record is not None and (record.by_task, record.attempt) == (new.task, new.attempt)

    def _recorded(self, new: NewStep) -> StepRecord | None:
        return StepRecord.objects.using(self._using).filter(origin=new.origin, name=new.name).first()

    def _ended(self, new: NewStep, began: float, result: str | None) -> NewStep:
        return new.ended(at=self.now(), seconds=monotonic() - began, result=result)


def _as_text(name: str, result: object) -> str | None:
    return None if result is None else json_text(f"result of step {name}", result)


class StepWriter:
    """Writes steps for the handlers of one asyncio loop. While one statement is running, further steps gather for the next."""

    def __init__(self, using: str) -> None:
        self._using = using
        self._waiting: list[_Asked] = []
        self._writing: asyncio.Task[None] | None = None

    async def write(self, step: NewStep) -> Stored | None:
        """
        Record a step that is done, together with others; give the record once it is committed. None: perhaps it is not
        recorded; the caller then writes it by itself. What ends the writing and the thread is raised.
        """
        future: asyncio.Future[Stored | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((step, future))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())
        return await future

    async def wait(self) -> None:
        """Wait until nothing is being written; the handler that asked for it may have been cancelled since."""
        if self._writing is not None:
            await asyncio.wait({self._writing})

    async def _write(self) -> None:
        group: list[_Asked] = []
        try:
            while self._waiting:
                group, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
                stored = await sync_to_async(_stored)([step for step, _future in group], self._using)
                for step, future in group:
                    if not future.done():  # The handler that asked may have been cancelled.
                        future.set_result(stored.get((step.origin, step.name)))
        except BaseException as error:  # noqa: BLE001 (what ends this ends all who wait for it)
            for _step, future in group + self._waiting:
                if not future.done():
                    future.set_exception(error)
            self._waiting = []
        finally:
            self._writing = None


def _stored(steps: Sequence[NewStep], using: str) -> Places:
    caught: list[Exception] = []
    with catching(caught):
        if len(steps) > 1 and dialect_of(using).has_set_statements:
            return record_steps(steps, using=using)
        alone = {(step.origin, step.name): record_step(step, using=using) for step in steps[:1]}
        return {place: stored for place, stored in alone.items() if stored is not None}
    drop_if_lost(caught[0], using)  # Each step is written by itself, and that try shows its own error.
    return {}
