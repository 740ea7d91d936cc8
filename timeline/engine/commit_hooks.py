"""Hooks of ``transaction.on_commit`` in handlers: an error in one does not affect the others, nor the outcome."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any
from uuid import UUID

from django.db import connections

logger = logging.getLogger("timeline")


def hooks_apart(task_ids: Sequence[UUID], *, using: str) -> AbstractContextManager[None]:
    """
    Log errors of hooks that are registered within the block, and call the other hooks all the same. The outcome is committed
    by then: an error would look like a commit that failed, and stop the hooks of other tasks.
    """
    return _HooksApart(task_ids, connections[using])


class _HooksApart:
    """A class, since a generator takes three times as long, and this is entered for each step."""

    __slots__ = ("_before", "_connection", "_task_ids")

    def __init__(self, task_ids: Sequence[UUID], connection: Any) -> None:
        self._task_ids = task_ids
        self._connection = connection

    def __enter__(self) -> None:
        """Note which hooks are there already."""
        self._before = len(self._connection.run_on_commit)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Wrap those that came since. After an error they are gone with the transaction."""
        hooks = self._connection.run_on_commit
        if error is None and len(hooks) > self._before:
            hooks[self._before :] = [
                (savepoints, _harmless(hook, self._task_ids), robust)
                for savepoints, hook, robust in hooks[self._before :]
            ]


def _harmless(hook: Callable[[], object], task_ids: Sequence[UUID]) -> Callable[[], None]:
    def call() -> None:
        try:
            hook()
        except BaseException as error:
            ids = [str(task_id) for task_id in task_ids]
            bound = {"task_id": ids[0], **({"task_ids": ids} if len(ids) > 1 else {})}
            logger.exception(_FAILED, hook, ", ".join(ids), error, extra=bound)
            if not isinstance(error, Exception):
                raise

    return call


_FAILED = "%r, called on commit of task %s, which has completed, raised: %s"
