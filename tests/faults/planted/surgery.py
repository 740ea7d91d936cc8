"""Faults planted in this process: text of a function or of a statement is replaced, wherever it was imported to."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import NamedTuple
from unittest import mock

from django.db import connection

from tests.faults.harness.roles import ROOT
from timeline import dialects
from timeline.store import locks
from timeline.store.changes import composed
from timeline.store.kept_statements import KEPT


class Change(NamedTuple):
    """
    This text, which is there once, becomes that one.

    Args:
        where: A function, as ``operations.moving:move``; or a statement, by the verb of its file.
        old, new: The text.
        vendor: Of the only database of which it is a part; empty: of all.
    """

    where: str
    old: str
    new: str
    vendor: str = ""


class Fault(NamedTuple):
    """One planted fault: its name in words, and what it changes."""

    name: str
    changes: tuple[Change, ...]


@contextmanager
def planted(fault: Fault, folder: Path) -> Iterator[None]:
    """
    Let the package have this fault within the block.

    Args:
        fault: To plant.
        folder: For changed statements.

    Raises:
        LookupError: if a text is not there (any more): the fault has to be written anew.
    """
    ours = [change for change in fault.changes if change.vendor in ("", connection.vendor)]
    if not ours:
        raise LookupError(f"{fault.name} changes nothing on {connection.vendor}.")
    with ExitStack() as stack:
        stack.callback(_renew_statements)
        if of_statements := [change for change in ours if ":" not in change.where]:
            stack.enter_context(_other_statements(of_statements, folder))
        for where in dict.fromkeys(change.where for change in ours if ":" in change.where):
            stack.enter_context(_other_function(where, [change for change in ours if change.where == where]))
        _renew_statements()
        yield


@contextmanager
def _other_statements(changes: list[Change], folder: Path) -> Iterator[None]:
    shutil.copytree(ROOT / "timeline" / "sql", folder / "sql")
    for change in changes:
        names = (f"{change.where}.{connection.vendor}.sql", f"{change.where}.sql")
        path = next(path for name in names if (path := folder / "sql" / name).is_file())
        path.write_text(_replaced(path.read_text(encoding="utf-8"), change), encoding="utf-8")
    with mock.patch.object(dialects, "files", return_value=folder):
        yield


def _renew_statements() -> None:
    """Read the statements anew, also those that are functions of the database."""
    for remembered in (
        dialects._read,
        composed,
        locks.lock_statement,
        locks.statement_of_rows,
    ):
        remembered.cache_clear()
    if dialects.dialect_of("default").has_trigger_functions and not connection.needs_rollback:
        with connection.cursor() as cursor:
            for kept in KEPT:
                cursor.execute(kept.function_text("default"))


@contextmanager
def _other_function(where: str, changes: list[Change]) -> Iterator[None]:
    """Give a function another body: whoever has imported it calls that."""
    module_name, _, name = where.partition(":")
    module = import_module(f"timeline.{module_name}")
    function = inspect.unwrap(getattr(module, name))
    assert isinstance(function, FunctionType)
    text = inspect.getsource(function)
    for change in changes:
        text = _replaced(text, change)
    made: dict[str, FunctionType] = {}
    exec(compile(text, module.__file__, "exec"), module.__dict__, made)  # noqa: S102 (our own text)
    before, function.__code__ = function.__code__, inspect.unwrap(made[name]).__code__
    try:
        yield
    finally:
        function.__code__ = before


def _replaced(text: str, change: Change) -> str:
    if text.count(change.old) != 1:
        raise LookupError(f"{change.where} has this {text.count(change.old)} times: {change.old!r}")
    return text.replace(change.old, change.new)
