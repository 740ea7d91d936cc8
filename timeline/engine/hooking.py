"""
Hooks that a handler registers with ``transaction.on_commit``: an error in one does not affect the others, nor the outcome.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.db import connections

logger = logging.getLogger("timeline")


@contextmanager
def hooks_apart(task_ids: Sequence[UUID], *, using: str) -> Iterator[None]:
    """
    Let no hook that is registered within the block harm anybody: its error is logged, and the other hooks are called.

    When hooks are called, the outcome is committed already. Without this, an error of a hook would look like a commit that
    failed, and would prevent the hooks of tasks that share the transaction.

    Args:
        task_ids: Tasks whose handlers are entered within the block, in a transaction.
        using: Database alias.
    """
    connection: Any = connections[using]  # The stubs describe the hooks of an older Django.
    before = len(connection.run_on_commit)
    yield
    connection.run_on_commit[before:] = [
        (savepoints, _harmless(hook, task_ids), robust)
        for savepoints, hook, robust in connection.run_on_commit[before:]
    ]


def _harmless(hook: Callable[[], object], task_ids: Sequence[UUID]) -> Callable[[], None]:
    def call() -> None:
        try:
            hook()
        except Exception as error:
            ids = [str(task_id) for task_id in task_ids]
            bound = {"task_id": ids[0], **({"task_ids": ids} if len(ids) > 1 else {})}
            logger.exception(_FAILED, hook, ", ".join(ids), error, extra=bound)

    return call


_FAILED = "%r, called on commit of task %s, which has completed, raised: %s"
