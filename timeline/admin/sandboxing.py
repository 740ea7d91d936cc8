"""Where guards are asked for a page: in one transaction, of which nothing stays, and as if each had it for itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from django.db import connections, transaction

from timeline.dialects import dialect_of
from timeline.store.guiding import as_select

BOUNDS: Final = {"lock_timeout": "100ms", "statement_timeout": "2s"}  # A page waits for no worker that has the entity.
_READS: Final = re.compile(
    r"\s*SELECT\b(?!.*\bFOR\s+(?:NO\s+KEY\s+|KEY\s+)?(?:UPDATE|SHARE)\b)", re.IGNORECASE | re.DOTALL
)


class Sandbox:
    """
    A transaction that is begun when the first is asked. A part that reads costs no statement of its own. What another does is
    undone behind it, and a transaction that a part has broken is left: the next one begins another.

    Args:
        using: Database alias.
    """

    def __init__(self, using: str) -> None:
        self._using = using
        self._stack = ExitStack()
        self._is_begun = self._is_bounded = self._is_broken = False
        self._savepoint: str | None = None

    @contextmanager
    def one(self) -> Iterator[None]:
        """Let somebody ask."""
        connection = connections[self._using]
        self._begin()
        try:
            with connection.execute_wrapper(self._watch):
                yield
        finally:
            if self._is_broken or connection.needs_rollback:
                self.leave()
            elif self._savepoint is not None:
                connection.savepoint_rollback(self._savepoint)
            self._savepoint = None

    def leave(self) -> None:
        """Undo all of it."""
        if self._is_begun:
            transaction.set_rollback(True, using=self._using)
            self._is_begun = self._is_broken = False
            self._stack.close()

    def _begin(self) -> None:
        if self._is_begun:
            return
        self._stack.enter_context(transaction.atomic(using=self._using))
        self._is_begun = True
        self._is_bounded = not dialect_of(self._using).has_settings

    def _watch(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        """Before the first statement, set its bounds; before the first that may change something, note what there was."""
        try:
            if not self._is_bounded:
                self._is_bounded = True
                with connections[self._using].cursor() as cursor:
                    cursor.execute(as_select(BOUNDS))  # Undone with the rest.
            if self._savepoint is None and not self._is_broken and not _READS.match(sql):
                self._savepoint = ""  # What follows is watched, too.
                self._savepoint = connections[self._using].savepoint()
            return execute(sql, params, many, context)
        except Exception:
            self._is_broken = True
            raise


@contextmanager
def shared(using: str) -> Iterator[Sandbox]:
    """Give one, and undo what was done in it."""
    sandbox = Sandbox(using)
    try:
        yield sandbox
    finally:
        sandbox.leave()
