"""
Count what was entered on a path: files, definitions and lines.

A definition is a function or method that was entered. Its lines go from its first decorator to its end: signature, docstring,
comments, empty lines and branches that were not taken count, for a reader has them before them. A line counts once, however
often its function is entered, and also where one function stands in another. What has no name of its own (a lambda, a
comprehension, a generator expression) is part of the function around it. Not counted: imports, constants, the rest of a class,
and methods that are generated, such as those of dataclasses. Of SQL the files that were read count whole.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType
from typing import NamedTuple

from benchmarks.paths.tracing import PACKAGE, Trace

_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Definition(NamedTuple):
    """
    A function or method.

    Args:
        file: Where it stands.
        name: With those of the classes and functions around it.
        first, last: Its lines.
    """

    file: Path
    name: str
    first: int
    last: int

    @property
    def lines(self) -> int:
        """How many it has."""
        return self.last - self.first + 1

    @property
    def place(self) -> str:
        """File and line, as an editor takes them."""
        return f"{self.file.relative_to(PACKAGE.parent)}:{self.first}"


class Figures(NamedTuple):
    """What a path comes to: of Python, then of SQL."""

    files: int
    definitions: int
    lines: int
    statements: int
    statement_lines: int


def entered(trace: Trace) -> list[Definition]:
    """The definitions that were entered, in order of the first entry."""
    found = (definition_of(code) for code in trace.code)
    return list(dict.fromkeys(definition for definition in found if definition is not None))


def count(trace: Trace) -> Figures:
    """Count a path."""
    definitions = entered(trace)
    lines = {(item.file, line) for item in definitions for line in range(item.first, item.last + 1)}
    return Figures(
        files=len({item.file for item in definitions}),
        definitions=len(definitions),
        lines=len(lines),
        statements=len(trace.statements),
        statement_lines=sum(len(path.read_text(encoding="utf-8").splitlines()) for path in trace.statements),
    )


def definition_of(code: CodeType) -> Definition | None:
    """The innermost function or method that this code stands in; None: it stands in none."""
    if code.co_name == "<module>":
        return None
    around = [item for item in _definitions(Path(code.co_filename)) if item.first <= code.co_firstlineno <= item.last]
    return min(around, key=lambda item: item.lines, default=None)


@cache
def _definitions(file: Path) -> list[Definition]:
    return list(_below(ast.parse(file.read_text(encoding="utf-8")), (), file))


def _below(node: ast.AST, names: tuple[str, ...], file: Path) -> Iterator[Definition]:
    for child in ast.iter_child_nodes(node):
        around = (*names, child.name) if isinstance(child, _Function | ast.ClassDef) else names
        if isinstance(child, _Function):
            first = min(part.lineno for part in (child, *child.decorator_list))
            yield Definition(file, ".".join(around), first, child.end_lineno or first)
        yield from _below(child, around, file)
