"""Take steps: do what is to be done, once, and pass over what an earlier attempt has done."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from threading import get_ident
from time import monotonic
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from django.db import DatabaseError, InterfaceError, connections
from django.utils.translation import gettext_lazy as _

from timeline import reasons
from timeline.clocks import is_told, story_now
from timeline.definition.context import StepContext, step_under_way
from timeline.definition.fingerprints import Given, digest_of
from timeline.definition.steps import MAX_STEP_KEY
from timeline.engine.hooking import hooks_apart
from timeline.exceptions import Discard, InvalidInput, LeaseLost, Rest, RetryAfter
from timeline.lifecycle import Reason
from timeline.models import StepKind, StepRecord
from timeline.payloads import check_json
from timeline.store.errors import drop_if_lost, may_be_written_later
from timeline.store.isolating import atomic
from timeline.store.stepping import NewStep, finish_step, record_step, steps_of, withdraw_step

if TYPE_CHECKING:
    from timeline.definition import Step
    from timeline.engine.attempting import Attempt


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
        self._attempt = attempt
        self._using = using
        self._thread = get_ident()
        self._began = monotonic()
        self._code = attempt.definition.code
        self._records: dict[str, StepRecord] | None = None if attempt.has_records else {}
        self._called: set[str] = set()
        self._passed: set[str] = set()
        self._stopped: BaseException | None = None
        self._failed: tuple[Step[Any, ..., Any], BaseException] | None = None

    def take(self, step: Step[Any, ..., Any], key: str, given: Given, body: Callable[[], Any]) -> Any:
        """
        Do a step, or answer for it; see ``timeline.definition.steps.Runner``.

        Raises:
            InvalidInput: naming what is wrong with how it is called.
            Rest: if it cannot be told what is right.
            LeaseLost: if the attempt is not its worker's any more.
        """
        name = f"{step.name}#{key}" if key else step.name
        if self._stopped is not None:  # The handler has caught what ended it.
            raise self._stopped
        self._refuse(step, key, name)
        self._called.add(name)
        if step.is_async:
            return self._take_async(step, key, name, given, body)
        with self._stopping():
            record = self._find(step, key, name, given)
            return record.result if record is not None else self._do(step, name, given, body)

    def has_failed(self, error: BaseException) -> Step[Any, ..., Any] | None:
        """The step that raised this error, or what it was raised from; None: none did."""
        if self._failed is None:
            return None
        step, raised = self._failed
        seen: BaseException | None = error
        while seen is not None and seen is not raised:
            seen = seen.__cause__ or seen.__context__
        return step if seen is raised else None

    def see_end(self) -> None:
        """
        See, when the handler has come back, that it has not caught what ended the attempt; and that an async handler, which may
        take its steps in any order, has come by all that was done before.

        Raises:
            Rest, LeaseLost: if the attempt has ended with that.
        """
        if self._stopped is not None:
            raise self._stopped
        if self._attempt.declared.is_async and self.recorded:
            self._see_order(self._attempt.declared.name)

    def _refuse(self, step: Step[Any, ..., Any], key: str, name: str) -> None:
        for problem, remedy in (
            *self._wrong_handler(step),
            *self._wrong_place(step),
            *self._wrong_name(key, name),
        ):
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

    def _wrong_place(self, step: Step[Any, ..., Any]) -> Iterator[tuple[Any, Any]]:
        if step_under_way.get() is not None:
            yield _("%(step)s is called in another step."), _("Call it in the handler, after the other one.")
        elif not step.is_async and get_ident() != self._thread:
            yield _("%(step)s is called in another thread."), _("Call it where the handler runs.")
        elif not step.is_async and _is_in_transaction(self._using):
            problem = _("%(step)s is called in a transaction: with that, the record could be undone after it happened.")
            yield problem, _("Call it outside of atomic(); an atomic step has a transaction of its own.")

    def _wrong_name(self, key: str, name: str) -> Iterator[tuple[Any, Any]]:
        if len(key) > MAX_STEP_KEY:
            yield _("%(step)s has a key that is too long."), _("Use 90 characters at most.")
        elif "\x00" in key:
            yield _("%(step)s has a key with a NUL in it."), _("Use text that the database stores.")
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

    def _find(self, step: Step[Any, ..., Any], key: str, name: str, given: Given) -> StepRecord | None:
        """
        The record of a step that is done; None: it is to be done.

        Raises:
            Rest: if the code has changed, and does not fit to what is done; or if nobody knows whether it is done.
        """
        records = self._earlier()
        was = f"{step.options.was}#{key}" if key else step.options.was
        record = records.get(name) or (records.get(was) if step.options.was else None)
        if record is None:
            if not step.is_async:
                self._see_order(name)
            return None
        self._passed.add(record.name)
        if record.kind == StepKind.BEGUN:
            raise Rest(reasons.STEP_IN_DOUBT(step=record.name))
        if self._is_of_other_code(record) and record.digest != digest_of(given):
            self._rest(reasons.STEP_CHANGED(step=record.name))
        return record

    def _earlier(self) -> dict[str, StepRecord]:
        if self._records is None:
            self._records = steps_of(self._attempt.idempotency_key, using=self._using)
        return self._records

    def _see_order(self, comes_to: str) -> None:
        for record in self._earlier().values():
            if record.name not in self._passed and self._is_of_other_code(record):
                self._rest(reasons.STEP_LEFT_OUT(step=comes_to, done=record.name))

    def _is_of_other_code(self, record: StepRecord) -> bool:
        return record.code not in ("", self._code)

    def _rest(self, reason: Reason) -> None:
        if self._attempt.declared.options.drift == "rest":
            raise Rest(reason)

    def _do(self, step: Step[Any, ..., Any], name: str, given: Given, body: Callable[[], Any]) -> Any:
        new, began = self._new(name, given), monotonic()
        token = step_under_way.set(StepContext(name=name, idempotency_key=f"{new.origin}:{name}"))
        try:
            if step.options.atomic:
                return self._do_in_transaction(new, began, body)
            if step.options.once:
                self._begin(new)
            try:
                result = body()
            except RetryAfter:
                if step.options.once:
                    withdraw_step(new, using=self._using)
                raise
            return self._keep(self._ended(new, began, result, name), once=step.options.once)
        except Exception as error:
            self._failed = (step, error)
            raise
        finally:
            step_under_way.reset(token)

    async def _take_async(
        self, step: Step[Any, ..., Any], key: str, name: str, given: Given, body: Callable[[], Any]
    ) -> Any:
        with self._stopping():
            if self._records is None:
                await sync_to_async(self._earlier)()
            if (record := self._find(step, key, name, given)) is not None:
                return record.result
            new, began = self._new(name, given), monotonic()
            token = step_under_way.set(StepContext(name=name, idempotency_key=f"{new.origin}:{name}"))
            try:
                if step.options.once:
                    await sync_to_async(self._begin)(new)
                try:
                    result = await body()
                except RetryAfter:
                    if step.options.once:
                        await sync_to_async(withdraw_step)(new, using=self._using)
                    raise
                ended = self._ended(new, began, result, name)
                return await sync_to_async(self._keep)(ended, once=step.options.once)
            except Exception as error:
                self._failed = (step, error)
                raise
            finally:
                step_under_way.reset(token)

    def _do_in_transaction(self, new: NewStep, began: float, body: Callable[[], Any]) -> Any:
        """What the step writes, and its record, in one transaction: the lock of the task's row comes last."""
        caught: list[Exception] = []
        try:
            with atomic(using=self._using, durable=True):
                with hooks_apart([new.task], using=self._using):
                    ended = self._ended(new, began, body(), "")
                if not record_step(ended, using=self._using):
                    raise _RecordedBefore
        except _RecordedBefore:
            return self._adopt(new)
        except (DatabaseError, InterfaceError) as error:
            if not may_be_written_later(error):
                raise
            caught.append(error)
        if caught:  # The answer of the COMMIT may have been lost, and not the COMMIT.
            drop_if_lost(caught[0], self._using)
            if (record := self._recorded(new)) is None:
                raise caught[0]
            self.recorded = True
            return record.result
        self.recorded = True
        return _as_read(ended.result)

    def _begin(self, new: NewStep) -> None:
        """Record that a step begins that may be called once. Where the answer is lost, ask whether that is recorded."""
        begun = replace(new, kind=StepKind.BEGUN, at=self._now())
        try:
            if record_step(begun, using=self._using):
                return
        except (DatabaseError, InterfaceError) as error:
            drop_if_lost(error, self._using)
            if not may_be_written_later(error):
                raise
            if record_step(begun, using=self._using):
                return
        record = self._recorded(new)
        if record is None:
            raise LeaseLost(new.task, new.attempt)
        if (record.task_id, record.attempt) != (
            new.task,
            new.attempt,
        ):  # Else it is ours: a name is taken once in an attempt.
            raise Rest(reasons.STEP_IN_DOUBT(step=new.name))

    def _keep(self, ended: NewStep, *, once: bool) -> Any:
        """Record what has happened. Where the database cannot just now, on a new connection, once."""
        write = finish_step if once else record_step
        try:
            written = write(ended, using=self._using)
        except (DatabaseError, InterfaceError) as error:
            drop_if_lost(error, self._using)
            if not may_be_written_later(error):
                raise
            written = write(ended, using=self._using)
        if not written:
            return self._adopt(ended)
        self.recorded = True
        return _as_read(ended.result)

    def _adopt(self, new: NewStep) -> Any:
        """What somebody else has recorded of this step meanwhile, or what a statement did whose answer was lost."""
        record = self._recorded(new)
        if record is None or record.kind == StepKind.BEGUN:
            raise LeaseLost(new.task, new.attempt)
        self.recorded = True
        return record.result

    def _recorded(self, new: NewStep) -> StepRecord | None:
        return StepRecord.objects.using(self._using).filter(origin=new.origin, name=new.name).first()

    def _new(self, name: str, given: Given) -> NewStep:
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

    def _ended(self, new: NewStep, began: float, result: object, plain: str) -> NewStep:
        """The step with what it returned, as JSON. What it has done outside is done, so that to try again would not help."""
        try:
            text = None if result is None else _as_text(new.name, result)
        except InvalidInput as error:
            if plain:
                raise Discard(str(error)) from error
            raise
        return new.ended(at=self._now(), seconds=monotonic() - began, result=text)

    def _now(self) -> datetime:
        """Story time: no statement asks for it."""
        if is_told():
            return story_now(self._using)
        return self._attempt.now + timedelta(seconds=monotonic() - self._began)


def _is_in_transaction(using: str) -> bool:
    """Whether the host has begun a transaction: a test case's own is none."""
    blocks: list[Any] = connections[using].atomic_blocks
    return bool(blocks) and not blocks[-1]._from_testcase


def _as_text(name: str, result: object) -> str:
    check_json(f"result of step {name}", result)
    return json.dumps(result, ensure_ascii=False)


def _as_read(text: str | None) -> Any:
    """As a later attempt will read it, so that the first one sees what comes back of it."""
    return None if text is None else json.loads(text)
