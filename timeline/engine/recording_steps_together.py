"""Record steps of handlers that run side by side: those that end meanwhile in one statement, with one commit."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from asgiref.sync import sync_to_async

from timeline.dialects import dialect_of
from timeline.store.errors import catching, drop_if_lost
from timeline.store.stepping import NewStep, Stored, record_step, record_steps

MOST: Final = 100

Places = Mapping[tuple[UUID, str], Stored]
_Asked = tuple[NewStep, asyncio.Future[Stored | None]]


class StepWriter:
    """
    Writes steps for the handlers of one asyncio loop. While one statement is running, further steps gather for the next.

    Args:
        using: Database alias.
    """

    def __init__(self, using: str) -> None:
        self._using = using
        self._waiting: list[_Asked] = []
        self._writing: asyncio.Task[None] | None = None

    async def write(self, step: NewStep) -> Stored | None:
        """
        Record a step that is done, together with others.

        Returns:
            The record, once it is committed. None: perhaps it is not recorded; then the caller writes it by itself.

        Raises:
            BaseException: whatever has ended the writing, if that is no Exception.
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
