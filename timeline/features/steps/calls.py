"""Do steps: each step that is not done, once; for steps that an earlier attempt has done, give its result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from threading import get_ident
from time import monotonic
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from django.utils.translation import gettext_lazy as _

from timeline import reasons
from timeline.definition.context import StepContext, step_under_way
from timeline.exceptions import HandlerSignal, InvalidInput, LeaseLost, Rest
from timeline.features.steps.batches import Batches
from timeline.features.steps.declaration import MAX_STEP_KEY
from timeline.features.steps.loops import BatchLoop
from timeline.features.steps.recorder import StepRecorder
from timeline.features.steps.refusals import RecordedSteps, named, refuse_rows, refuse_step
from timeline.hooks import around, hooks
from timeline.models import StepKind
from timeline.payloads import check_text

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet

    from timeline.definition import Step
    from timeline.engine.attempts import Attempt
    from timeline.models import StepRecord


class Steps:
    """
    The steps of one attempt. They are done by one thread, or by one asyncio loop. The attempt holds them, so neither they nor
    their parts hold it: such a cycle would stay until the collector of garbage finds it.
    """

    def __init__(self, attempt: Attempt, using: str) -> None:
        self._handler = attempt.declared
        self._using = using
        self._thread = get_ident()
        self._origin = str(attempt.idempotency_key)
        self.recorder = StepRecorder(attempt, using)
        self._before = RecordedSteps(attempt)
        self._called: set[str] = set()
        self._stopped: BaseException | None = None
        self._failed: list[tuple[Step[Any, ..., Any], BaseException]] = []
        self._beside: set[asyncio.Task[Any]] = set()
        self._is_over = False
        self._has_failed = False

    @property
    def has_recorded(self) -> bool:
        """Whether this attempt has done a step, so that failures are counted anew."""
        return self.recorder.has_recorded

    @property
    def in_doubt(self) -> str:
        """The step that this attempt began, and of which nobody knows whether it happened; empty: there is none."""
        return self.recorder.in_doubt

    def take(self, step: Step[Any, ..., Any], key: str, given: dict[str, Any], body: Callable[[], Any]) -> Any:
        """
        Do a step, or give its recorded result; see ``timeline.features.steps.declaration.Runner``. ``Rest`` if nobody can tell
        whether it is to be done; ``LeaseLost`` if the attempt is not ours any more.
        """
        self.refuse_to_go_on()
        name = self._announce(step, key)
        if step.is_async:
            return self._take_async(step, name, key, given, body)
        with self.stopping():
            record = self._before.find(step, key, given)
            return record.result if record is not None else self._do(step, name, key, given, body)

    def each(
        self, step: Step[Any, ..., Any], key: str, rows: QuerySet[Any], size: int, body: Callable[[Any], Any]
    ) -> Any:
        """Do a step for each batch that is not done; see ``Runner``. Raises what ``take`` does."""
        self.refuse_to_go_on()
        batches = Batches(rows, size, using=self._using)
        refuse_rows(step, batches, using=self._using)
        self._announce(step, key)
        if step.is_async:
            return self._each_async(step, key, batches, body)
        with self.stopping():
            record = self._before.find(step, key, batches.given)
            if record is not None and record.kind != StepKind.LOOP:
                return record.result
            # A renamed loop keeps its record under the old name: older code may come back to it.
            new = self.recorder.new(record.name if record else named(step.name, key), batches.given)
            loop = BatchLoop(new, record, batches, self.recorder)

            def call(batch: Sequence[Model]) -> Any:
                with _UnderWay(self, step, new.name, key, first=loop.first):
                    return body(batch)

            with self._remembering(step):
                if step.options.atomic:
                    while loop.take_in_transaction(call):
                        pass
                else:
                    while batch := loop.begin_batch():
                        loop.end_batch(call(batch))
                        self._refuse(step, new.name)
            return loop.sums

    def has_failed(self, error: BaseException) -> Step[Any, ..., Any] | None:
        """The step that raised this error or its cause; None: no step did."""
        raised: dict[int, Step[Any, ..., Any]] = {id(error): step for step, error in self._failed}
        seen: set[int] = set()
        cause: BaseException | None = error
        while cause is not None and id(cause) not in seen:
            if id(cause) in raised:
                return raised[id(cause)]
            seen.add(id(cause))
            cause = cause.__cause__ or cause.__context__
        return None

    def stop(self, error: LeaseLost) -> None:
        """Refuse all further steps: the attempt is not its worker's any more."""
        self._stopped = self._stopped or error

    def see_end(self) -> None:
        """Raise the error that ended the attempt, if the handler has caught it; ``Rest`` if it left a step in doubt."""
        if self._stopped is not None:
            raise self._stopped
        if self.in_doubt:
            raise Rest(reasons.STEP_IN_DOUBT(step=self.in_doubt))

    async def wait_for_those_beside(self, *, failed: bool, cancel: bool) -> None:
        """
        Wait for steps that an async handler has left running; no further step begins. If it has ``failed``, loops end after
        the running batch. With ``cancel``, the steps are cancelled first.
        """
        self._is_over, self._has_failed = True, failed
        while self._beside:
            for task in set(self._beside) if cancel else ():
                task.cancel()
            await asyncio.wait(set(self._beside))

    def refuse_to_go_on(self) -> None:
        """Let no step begin after the attempt has ended, even if its handler catches that."""
        if self._stopped is not None:  # The handler has caught the error that ended the attempt.
            raise self._stopped
        if self._is_over:
            raise asyncio.CancelledError("the handler has ended")

    def announce_rest(self, name: str, word: str, apart: str) -> None:
        """Refuse a wait or a sleep if this attempt has had one of this name; ``apart``: how several calls are told apart."""
        self.refuse_to_go_on()
        if name in self._called:
            problem = _("is called twice in one attempt for the same.")
            raise InvalidInput(word, problem, _("Tell the calls apart: %(apart)s."), apart=apart)
        self._called.add(name)

    def recorded(self, name: str, given: dict[str, Any]) -> StepRecord | None:
        """The record of something that is no step, as of a step: ``Rest`` if the code does not fit what is done."""
        return self._before.named(name, given, in_order=not self._handler.is_async)

    def _announce(self, step: Step[Any, ..., Any], key: str) -> str:
        """Refuse a step that cannot be done here; otherwise it counts as called. Give its name, with its key."""
        check_text("key", key, MAX_STEP_KEY)
        name = named(step.name, key)
        self._refuse(step, name, again=name in self._called)
        self._called.add(name)
        return name

    def _refuse(self, step: Step[Any, ..., Any], name: str, *, again: bool = False) -> None:
        elsewhere = get_ident() != self._thread
        refuse_step(step, name, handler=self._handler, elsewhere=elsewhere, again=again, using=self._using)

    def stopping(self) -> AbstractContextManager[None]:
        """Refuse further steps after the error that ends the attempt, even if its handler catches it."""
        return _Stopping(self)

    @contextmanager
    def beside_others(self) -> Iterator[None]:
        """Let the end of the handler wait for this asyncio task."""
        this = asyncio.current_task()
        if this is None:
            yield
            return
        self._beside.add(this)
        try:
            yield
        finally:
            self._beside.discard(this)

    @contextmanager
    def _remembering(self, step: Step[Any, ..., Any]) -> Iterator[None]:
        """Remember which step has raised an error."""
        try:
            yield
        except BaseException as error:
            self._failed.append((step, error))
            raise

    def _do(
        self, step: Step[Any, ..., Any], name: str, key: str, given: dict[str, Any], body: Callable[[], Any]
    ) -> Any:
        recorder = self.recorder
        new, began = recorder.new(name, given), monotonic()
        with _UnderWay(self, step, name, key):
            if step.options.atomic:
                return recorder.do_in_transaction(new, body)
            if step.options.once:
                recorder.begin(new)
            try:
                result = body()
            except HandlerSignal:
                if step.options.once:
                    recorder.withdraw(new)
                raise
            return recorder.keep(recorder.happened(new, began, result), once=step.options.once)

    async def _take_async(
        self, step: Step[Any, ..., Any], name: str, key: str, given: dict[str, Any], body: Callable[[], Any]
    ) -> Any:
        with self.beside_others(), self.stopping():
            self.refuse_to_go_on()  # The coroutine may have been made some time ago.
            if (record := self._before.find(step, key, given)) is not None:
                return record.result
            return await self._do_async(step, name, key, given, body)

    async def _each_async(
        self, step: Step[Any, ..., Any], key: str, batches: Batches[Any], body: Callable[[Any], Any]
    ) -> Any:
        with self.beside_others(), self.stopping():
            self.refuse_to_go_on()
            record = self._before.find(step, key, batches.given)
            if record is not None and record.kind != StepKind.LOOP:
                return record.result
            new = self.recorder.new(record.name if record else named(step.name, key), batches.given)
            loop = await sync_to_async(BatchLoop)(new, record, batches, self.recorder)
            with self._remembering(step):
                while batch := await sync_to_async(loop.begin_batch)():
                    with _UnderWay(self, step, new.name, key, first=loop.first):
                        result = await body(batch)
                    await sync_to_async(loop.end_batch)(result)
                    if self._stopped is not None or self._has_failed:
                        raise self._stopped or asyncio.CancelledError("the handler has failed")
            return loop.sums

    async def _do_async(
        self, step: Step[Any, ..., Any], name: str, key: str, given: dict[str, Any], body: Callable[[], Any]
    ) -> Any:
        recorder = self.recorder
        new, began = recorder.new(name, given), monotonic()
        with _UnderWay(self, step, name, key):
            if step.options.once:
                await sync_to_async(recorder.begin)(new)
            try:
                result = await body()
            except HandlerSignal:
                if step.options.once:
                    await sync_to_async(recorder.withdraw)(new)
                raise
            ended = recorder.happened(new, began, result)
            if step.options.once:
                return await sync_to_async(recorder.keep)(ended, once=True)
            return await recorder.keep_with_others(ended)


# Classes, since generators take three times as long, and both are entered for each step.
class _Stopping:
    """See ``Steps.stopping``."""

    __slots__ = ("_steps",)

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    def __enter__(self) -> None:
        """Enter."""

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Keep what ends the attempt."""
        if isinstance(error, Rest | LeaseLost):
            self._steps._stopped = error


class _UnderWay:
    """Give the method its step, and the key of the first row of its batch if it has one; remember an error that it raises."""

    __slots__ = ("_around", "_context", "_step", "_steps", "_token")

    def __init__(self, steps: Steps, step: Step[Any, ..., Any], name: str, key: str, *, first: object = None) -> None:
        was = step.options.was
        # A renamed step keeps its idempotency key for the service that is called.
        known_as = f"{steps._origin}:{named(was or step.name, key)}"
        if first is not None:
            known_as += f":{first}"
        self._steps, self._step = steps, step
        self._context = StepContext(name=name, idempotency_key=known_as)
        self._around = around(hooks().steps, step.name)

    def __enter__(self) -> None:
        """The method is called."""
        self._around.__enter__()
        self._token = step_under_way.set(self._context)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """The method has come back."""
        if error is not None:
            self._steps._failed.append((self._step, error))
        step_under_way.reset(self._token)
        self._around.__exit__(type(error) if error is not None else None, error, None)
