"""What a handler registers with ``transaction.on_commit``: each call stands for itself, once the outcome is committed."""

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
    Let no hook that is registered within harm anybody: what it raises is logged, and the others are called.

    When hooks are called, the commit that has the outcome is done. An error would else be taken for a commit that failed, and
    would keep the hooks of those who share the transaction from being called.

    Args:
        task_ids: Whose handler is entered within, in a transaction.
        using: Database alias.
    """
    connection: Any = connections[using]  # Its stubs know the hooks of an older Django.
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
