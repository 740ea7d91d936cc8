"""Take steps: do what is to be done, once, and pass over what an earlier attempt has done."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from threading import get_ident
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from asgiref.sync import sync_to_async
from django.db import DatabaseError, InterfaceError, connections
from django.utils.translation import gettext_lazy as _

from timeline import reasons
from timeline.clocks import is_told, story_now
from timeline.definition.context import StepContext, step_under_way
from timeline.definition.fingerprints import digest_of
from timeline.definition.steps import MAX_STEP_KEY
from timeline.engine.hooking import hooks_apart
from timeline.exceptions import Discard, HandlerSignal, InvalidInput, LeaseLost, Rest
from timeline.lifecycle import Reason
from timeline.models import StepKind, StepRecord
from timeline.payloads import check_json, check_text
from timeline.store.errors import drop_if_lost, may_be_written_later
from timeline.store.isolating import atomic
from timeline.store.stepping import (
    NewStep,
    Stored,
    finish_step,
    is_its_workers,
    record_step,
    withdraw_step,
)

if TYPE_CHECKING:
    from timeline.definition import Step
    from timeline.engine.attempting import Attempt

_IDLE: Final = 0  # As psycopg calls a connection that is in no transaction.


class _RecordedBefore(Exception):
    """Somebody has recorded this step meanwhile: what was written here is undone."""


class Steps:
    """
    The steps of one attempt. One thread, or one asyncio loop, takes them.

    Args:
        attempt: Whose handler is entered.
        using: Database alias.
    """

    def __init__(self, attempt: Attempt, using: str) -> None:
        self.recorded = False  # Whether this attempt has done one, so that failures are counted anew.
        self.in_doubt = ""  # The step that this attempt began, and of which nobody knows whether it happened.
        self._attempt = attempt
        self._using = using
        self._thread = get_ident()
        self._began = monotonic()
        self._code = attempt.definition.code
        self._called: set[str] = set()
        self._passed: set[str] = set()
        self._stopped: BaseException | None = None
        self._failed: list[tuple[Step[Any, ..., Any], BaseException]] = []
        self._beside: set[asyncio.Task[Any]] = set()
        self._is_over = False

    def take(self, step: Step[Any, ..., Any], key: str, given: dict[str, Any], body: Callable[[], Any]) -> Any:
        """
        Do a step, or answer for it; see ``timeline.definition.steps.Runner``.

        Raises:
            InvalidInput: naming what is wrong with how it is called.
            Rest: if it cannot be told what is right.
            LeaseLost: if the attempt is not its worker's any more.
        """
        name = f"{step.name}#{key}" if key else step.name
        self._refuse_to_go_on()
        self._refuse(step, key, name)
        self._called.add(name)
        if step.is_async:
            return self._take_async(step, key, name, given, body)
        with self._stopping():
            record = self._find(step, key, name, given)
            return record.result if record is not None else self._do(step, key, name, given, body)

    def has_failed(self, error: BaseException) -> Step[Any, ..., Any] | None:
        """The step that raised this error, or what it was raised from; None: none did."""
        raised: dict[int, Step[Any, ..., Any]] = {id(error): step for step, error in self._failed}
        seen: set[int] = set()
        cause: BaseException | None = error
        while cause is not None and id(cause) not in seen:
            if id(cause) in raised:
                return raised[id(cause)]
            seen.add(id(cause))
            cause = cause.__cause__ or cause.__context__
        return None

    def see_end(self) -> None:
        """
        See, when the handler has come back, that it has not caught what ended the attempt, nor what left a step in doubt.

        Raises:
            Rest, LeaseLost: if the attempt has ended with that.
        """
        if self._stopped is not None:
            raise self._stopped
        if self.in_doubt:
            raise Rest(reasons.STEP_IN_DOUBT(step=self.in_doubt))

    async def wait_for_those_beside(self, *, cancel: bool) -> None:
        """
        Wait for the steps that an async handler has left under way; it begins no further one.

        Args:
            cancel: Them first: the handler was broken off.
        """
        self._is_over = True
        while self._beside:
            for task in set(self._beside) if cancel else ():
                task.cancel()
            await asyncio.wait(set(self._beside))

    def _refuse_to_go_on(self) -> None:
        if self._stopped is not None:  # The handler has caught what ended it.
            raise self._stopped
        if self._is_over:
            raise asyncio.CancelledError("the handler has ended")

    def _refuse(self, step: Step[Any, ..., Any], key: str, name: str) -> None:
        check_text("key", key, MAX_STEP_KEY)
        for problem, remedy in (*self._wrong_handler(step), *self._wrong_place(step, name)):
            raise InvalidInput("step", problem, remedy, step=name, method=step.name)

    def _wrong_handler(self, step: Step[Any, ..., Any]) -> Iterator[tuple[Any, Any]]:
        declared = self._attempt.declared
        if declared.options.bulk is not None:
            yield _("%(step)s is called for many entities at once."), _("Take steps in a handler without bulk.")
        elif declared.options.atomic:
            problem = _("%(step)s is called in an atomic handler: with its transaction, the record could be undone.")
            yield problem, _("Declare the task with atomic=False.")
        elif declared.is_async is not step.is_async:
            problem = _("%(step)s and the handler are not both declared with async def.")
            yield problem, _("Declare both with async def, or none.")

    def _wrong_place(self, step: Step[Any, ..., Any], name: str) -> Iterator[tuple[Any, Any]]:
        if step_under_way.get() is not None:
            yield _("%(step)s is called in another step."), _("Call it in the handler, after the other one.")
        elif not step.is_async and get_ident() != self._thread:
            yield _("%(step)s is called in another thread."), _("Call it where the handler runs.")
        elif not step.is_async and _is_in_transaction(self._using):
            problem = _("%(step)s is called in a transaction: with that, the record could be undone after it happened.")
            yield problem, _("Call it outside of atomic(); an atomic step has a transaction of its own.")
        elif name in self._called:
            remedy = _("Tell the calls apart by a key: self.%(method)s.keyed(…).")
            yield _("%(step)s is called twice in one attempt."), remedy

    @contextmanager
    def _stopping(self) -> Iterator[None]:
        """Let no further step be taken after what ends the attempt, even if its handler catches that."""
        try:
            yield
        except (Rest, LeaseLost) as error:
            self._stopped = error
            raise

    def _find(self, step: Step[Any, ..., Any], key: str, name: str, given: dict[str, Any]) -> StepRecord | None:
        """
        The record of a step that is done; None: it is to be done.

        Raises:
            Rest: if the code has changed, and does not fit to what is done.
        """
        records = self._attempt.records
        was = _named(step.options.was, key)
        record = records.get(name) or (records.get(was) if step.options.was else None)
        if record is None:
            if not step.is_async:
                self._see_order(name)
            return None
        self._passed.add(record.name)
        if self._is_of_other_code(record) and record.digest != digest_of(given):
            self._rest(reasons.STEP_CHANGED(step=record.name))
        return record

    def _see_order(self, comes_to: str) -> None:
        for record in self._attempt.records.values():
            if record.name not in self._passed and self._is_of_other_code(record):
                self._rest(reasons.STEP_LEFT_OUT(step=comes_to, done=record.name))

    def _is_of_other_code(self, record: StepRecord) -> bool:
        return record.code not in ("", self._code)

    def _rest(self, reason: Reason) -> None:
        if self._attempt.declared.options.drift == "rest":
            raise Rest(reason)

    @contextmanager
    def _under_way(self, step: Step[Any, ..., Any], new: NewStep, key: str) -> Iterator[None]:
        """Let the method know its step, and remember what it raises."""
        # Renamed, it is the same to whoever is called.
        known_as = f"{new.origin}:{_named(step.options.was or step.name, key)}"
        token = step_under_way.set(StepContext(name=new.name, idempotency_key=known_as))
        try:
            yield
        except Exception as error:
            self._failed.append((step, error))
            raise
        finally:
            step_under_way.reset(token)

    def _do(
        self, step: Step[Any, ..., Any], key: str, name: str, given: dict[str, Any], body: Callable[[], Any]
    ) -> Any:
        new, began = self._new(name, given), monotonic()
        with self._under_way(step, new, key):
            if step.options.atomic:
                return self._do_in_transaction(new, began, body)
            if step.options.once:
                self._begin(new)
            try:
                result = body()
            except HandlerSignal:
                if step.options.once:
                    self._withdraw(new)
                raise
            return self._keep(self._ended(new, began, result, is_done=True), once=step.options.once)

    async def _take_async(
        self, step: Step[Any, ..., Any], key: str, name: str, given: dict[str, Any], body: Callable[[], Any]
    ) -> Any:
        this = asyncio.current_task()
        if this is not None:
            self._beside.add(this)
        try:
            with self._stopping():
                self._refuse_to_go_on()  # Its coroutine may have been made some time ago.
                if (record := self._find(step, key, name, given)) is not None:
                    return record.result
                new, began = self._new(name, given), monotonic()
                with self._under_way(step, new, key):
                    if step.options.once:
                        await sync_to_async(self._begin)(new)
                    try:
                        result = await body()
                    except HandlerSignal:
                        if step.options.once:
                            await sync_to_async(self._withdraw)(new)
                        raise
                    ended = self._ended(new, began, result, is_done=True)
                    return await sync_to_async(self._keep)(ended, once=step.options.once)
        finally:
            if this is not None:
                self._beside.discard(this)

    def _do_in_transaction(self, new: NewStep, began: float, body: Callable[[], Any]) -> Any:
        """What the step writes, and its record, in one transaction: the lock of the task's row comes last."""
        try:
            with atomic(using=self._using, durable=True):
                with hooks_apart([new.task], using=self._using):
                    ended = self._ended(new, began, body(), is_done=False)
                stored = record_step(ended, using=self._using)
                if stored is None:
                    raise _RecordedBefore
        except _RecordedBefore:
            return self._adopt(new)
        except (DatabaseError, InterfaceError) as error:
            if not may_be_written_later(error):
                raise
            drop_if_lost(error, self._using)  # The answer of the COMMIT may have been lost, and not the COMMIT.
            if self._recorded(new) is None:
                raise
            return self._adopt(new)
        return self._done(stored)

    def _begin(self, new: NewStep) -> None:
        """Record that a step begins that may be called once. Where the answer is lost, ask whether that is recorded."""
        begun = replace(new, kind=StepKind.BEGUN, at=self._now())
        try:
            stored = record_step(begun, using=self._using)
        except (DatabaseError, InterfaceError) as error:
            drop_if_lost(error, self._using)
            if not may_be_written_later(error):
                raise
            stored = record_step(begun, using=self._using)
        if stored is None and not (self._is_ours(self._recorded(new), new) and is_its_workers(new, using=self._using)):
            raise LeaseLost(new.task, new.attempt)
        self.in_doubt = new.name

    def _withdraw(self, new: NewStep) -> None:
        withdraw_step(new, using=self._using)
        self.in_doubt = ""

    def _keep(self, ended: NewStep, *, once: bool) -> Any:
        """Record what has happened. Where the database cannot just now, on a new connection, once."""
        write = finish_step if once else record_step
        try:
            stored = write(ended, using=self._using)
        except (DatabaseError, InterfaceError) as error:
            drop_if_lost(error, self._using)
            if not may_be_written_later(error):
                raise
            stored = write(ended, using=self._using)
        result = self._adopt(ended) if stored is None else self._done(stored)
        if self.in_doubt == ended.name:
            self.in_doubt = ""
        return result

    def _done(self, stored: Stored) -> Any:
        """What the step gives, as a later attempt will read it."""
        self.recorded = True
        return None if stored.result is None else json.loads(stored.result)

    def _adopt(self, new: NewStep) -> Any:
        """What is recorded of this step already: by a statement of ours, whose answer was lost; else by another attempt."""
        record = self._recorded(new)
        if record is None or record.kind == StepKind.BEGUN or not self._is_ours(record, new):
            raise LeaseLost(new.task, new.attempt)
        self.recorded = True
        return record.result

    def _is_ours(self, record: StepRecord | None, new: NewStep) -> bool:
        """Whether this attempt has recorded it: a name is taken once in an attempt."""
        return record is not None and (record.task_id, record.attempt) == (new.task, new.attempt)

    def _recorded(self, new: NewStep) -> StepRecord | None:
        return StepRecord.objects.using(self._using).filter(origin=new.origin, name=new.name).first()

    def _new(self, name: str, given: dict[str, Any]) -> NewStep:
        task = self._attempt.task
        return NewStep(
            origin=self._attempt.idempotency_key,
            name=name,
            task=task.id,
            attempt=task.attempt,
            digest=digest_of(given),
            code=self._code,
            at=self._attempt.now,
        )

    def _ended(self, new: NewStep, began: float, result: object, *, is_done: bool) -> NewStep:
        """
        The step with what it returned, as JSON.

        Raises:
            Discard: if that is none, and what the step did outside is done: to try again would do it again.
            InvalidInput: if that is none, and the step's transaction is undone with it.
        """
        try:
            text = None if result is None else _as_text(new.name, result)
        except InvalidInput as error:
            if is_done:
                raise Discard(str(error)) from error
            raise
        return new.ended(at=self._now(), seconds=monotonic() - began, result=text)

    def _now(self) -> datetime:
        """Story time: no statement asks for it."""
        if is_told():
            return story_now(self._using)
        return self._attempt.now + timedelta(seconds=monotonic() - self._began)


def misfit(attempt: Attempt) -> Reason | None:
    """
    Tell why a task of which steps are done, or begun, is not to be gone on with; None: it is.

    Args:
        attempt: With its records, before its handler is entered.
    """
    records: Mapping[str, StepRecord] = attempt.records
    for record in records.values():
        if record.kind == StepKind.BEGUN:
            return reasons.STEP_IN_DOUBT(step=record.name)
    if attempt.definition.shadow:
        return reasons.STEPS_IN_SHADOW()
    counted = [record for record in records.values() if record.code]
    known = frozenset().union(*(step.names for step in attempt.definition.steps.values()))
    unknown = [record for record in counted if record.name.partition("#")[0] not in known]
    options = attempt.declared.options
    if counted and (len(unknown) == len(counted) or options.atomic or options.bulk is not None):
        return reasons.STEPS_GONE()
    if unknown and attempt.declared.is_async and options.drift == "rest":
        return reasons.STEP_GONE(done=unknown[0].name)
    return None


def _is_in_transaction(using: str) -> bool:
    """Whether the host has begun a transaction: a test case's own is none."""
    connection: Any = connections[using]
    if blocks := connection.atomic_blocks:
        return not blocks[-1]._from_testcase
    if connection.connection is None:
        return False
    status = getattr(getattr(connection.connection, "pgconn", None), "transaction_status", _IDLE)
    return not connection.get_autocommit() or status != _IDLE or getattr(connection.connection, "in_transaction", False)


def _named(name: str, key: str) -> str:
    return f"{name}#{key}" if key else name


def _as_text(name: str, result: object) -> str:
    check_json(f"result of step {name}", result)
    return json.dumps(result, ensure_ascii=False)
