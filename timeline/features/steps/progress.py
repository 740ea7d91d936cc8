"""Tell people how far the handler of an attempt is: a record of its own, overwritten at most once a second."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from asgiref.sync import sync_to_async
from django.db import DatabaseError, InterfaceError
from django.utils.translation import gettext_lazy as _

from timeline.clocks import CountedClock
from timeline.exceptions import InvalidInput, LeaseLost
from timeline.features.steps.refusals import is_in_transaction
from timeline.features.steps.store import NewStep, record_place
from timeline.models import StepKind
from timeline.models.task_records import PROGRESS
from timeline.store.database_errors import drop_if_lost, may_be_written_later

if TYPE_CHECKING:
    from timeline.definition import Task
    from timeline.engine.attempts import Attempt


logger = logging.getLogger("timeline")

SELDOM: Final = 1.0  # Seconds between two records.


class ProgressTeller:
    """Tells the progress of one attempt."""

    def __init__(self, attempt: Attempt, using: str) -> None:
        self._attempt = attempt
        self._using = using
        self._began = monotonic()
        self._told = 0.0

    def tell(self, done: int, total: int | None, note: str) -> None:
        """
        Record the progress.

        Raises:
            InvalidInput: if nobody would see it before the handler ends.
            LeaseLost: if the attempt is not its worker's any more.
        """
        self._refuse(_wrong_handler(self._attempt.declared, is_async=False))
        if is_in_transaction(self._using):
            problem = _("is called in a transaction: nobody would see it before that ends.")
            raise InvalidInput("progress", problem, _("Call it outside of atomic() and of atomic steps."))
        self._write(done, total, note)

    async def atell(self, done: int, total: int | None, note: str) -> None:
        """Record the progress, from an ``async def``; raises what ``tell`` does."""
        self._refuse(_wrong_handler(self._attempt.declared, is_async=True))
        await sync_to_async(self._write)(done, total, note)

    def _refuse(self, problems: Iterator[tuple[Any, Any]]) -> None:
        for problem, remedy in problems:
            raise InvalidInput("progress", problem, remedy)

    def _write(self, done: int, total: int | None, note: str) -> None:
        now = monotonic()
        if self._told and now - self._told < SELDOM and done != total:
            return
        self._told = now
        if not self._write_note(self._note(done, total, note, seconds=now - self._began)):
            lost = LeaseLost(self._attempt.task.id, self._attempt.task.attempt)
            if self._attempt.steps is not None:
                self._attempt.steps.stop(lost)
            raise lost

    def _note(self, done: int, total: int | None, note: str, *, seconds: float) -> NewStep:
        task = self._attempt.task
        return NewStep(
            origin=self._attempt.idempotency_key,
            name=PROGRESS,
            task=task.id,
            attempt=task.attempt,
            digest="",
            code="",
            kind=StepKind.NOTE,
            at=CountedClock(self._attempt.now, self._using, begun=self._began)(),
            seconds=seconds,
            result=json.dumps(note, ensure_ascii=False) if note else None,
            done=done,
            total=total,
        )

    def _write_note(self, note: NewStep) -> bool:
        """Write the record; that it cannot be written fails no handler. False: the attempt is not its worker's any more."""
        try:
            return record_place(note, using=self._using) is not None
        except (DatabaseError, InterfaceError) as error:
            if not may_be_written_later(error):
                raise
            drop_if_lost(error, self._using)
            logger.debug("How far task %s is could not be written: %s", note.task, error)
            return True


def _wrong_handler(handler: Task[Any, ..., Any], *, is_async: bool) -> Iterator[tuple[Any, Any]]:
    if handler.options.bulk is not None:
        yield _("is called for many entities at once."), _("Call it in a handler without bulk.")
    elif handler.options.atomic:
        yield (
            _("is called in an atomic handler: nobody would see it before that ends."),
            _("Declare it with atomic=False."),
        )
    elif handler.is_async is not is_async:
        yield _("is called as a handler of another kind calls it."), _("In async def: await self.aprogress(…).")
