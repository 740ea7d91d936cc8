"""Reads what the code says of itself: docstrings in parts, signatures, and attributes with a text below them."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import is_dataclass
from datetime import timedelta
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple


class Said(NamedTuple):
    """A docstring in parts: its text, what it says of each argument, what comes back, and what is raised."""

    text: str
    args: dict[str, str]
    returns: str
    raises: dict[str, str]


def markdown(text: str) -> str:
    """Code in single backticks, paragraphs in one line each, pages of the docs by their name."""
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", text.strip())]
    return re.sub(r"``([^`]+)``", r"`\1`", "\n\n".join(paragraphs))


def said_of(documented: Any) -> Said:
    """What a docstring says; of a verb that names another function, its arguments and errors as well."""
    doc = inspect.cleandoc(documented if isinstance(documented, str) else inspect.getdoc(documented) or "")
    parts = re.split(r"^(Args|Returns|Raises|Yields):\n", doc, flags=re.MULTILINE)
    text, sections = parts[0], dict(zip(parts[1::2], parts[2::2], strict=True))
    args, raises = (named(sections.get(title, "")) for title in ("Args", "Raises"))
    text = re.sub(r"\s*See docs/\S+ for [^.]*\.", "", text)
    if other := re.search(r"\s*See\s+``(timeline\.[\w.]+)\.(\w+)``(?:\s+for [^.]*)?\.", text):
        below = said_of(getattr(import_module(other[1]), other[2]))
        text = text.replace(other[0], "")
        args, raises = {**below.args, **args}, {**below.raises, **raises}
        sections.setdefault("Returns", below.returns)
    return Said(markdown(text), args, markdown(sections.get("Returns", sections.get("Yields", ""))), raises)


def named(section: str) -> dict[str, str]:
    """Name → text of each entry of a section of a docstring."""
    entries = re.split(r"^(?=\S)", inspect.cleandoc("\n" + section), flags=re.MULTILINE)
    pairs = [re.split(r":\s", entry, maxsplit=1) for entry in entries if re.search(r":\s", entry)]
    told = {name.strip().strip("`"): markdown(text) for name, text in pairs}
    return {name: re.sub(r"\s*See docs/\S+ for [^.]*\.", "", text) for name, text in told.items()}


def call_of(function: Any, name: str) -> str:
    """How it is called: names and defaults, without types."""
    shown, star = [], False
    for each in inspect.signature(function).parameters.values():
        if each.name in {"self", "cls"}:
            continue
        if each.kind is each.KEYWORD_ONLY and not star:
            shown.append("*")
            star = True
        prefix = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        star = star or each.kind is each.VAR_POSITIONAL
        shown.append(prefix + each.name + ("" if each.default is each.empty else f"={default(each.default)}"))
    return f"{name}({', '.join(shown)})"


def default(value: Any) -> str:
    """A default as code."""
    if isinstance(value, timedelta):
        return span(value)
    if isinstance(value, type):
        return value.__name__
    if is_dataclass(value) and value == type(value)():
        return f"{type(value).__name__}()"
    return repr(value)


def span(value: timedelta) -> str:
    """A time as code."""
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if (seconds := value.total_seconds()) % size == 0:
            return f"timedelta({unit}={seconds / size:g})"
    return f"timedelta(seconds={value.total_seconds():g})"


def attributes_of(cls: type) -> list[tuple[str, str, str]]:
    """Each public attribute of a class that has a docstring below it: name, default, text. Read from the source."""
    body = ast.parse(inspect.cleandoc("\n" + inspect.getsource(cls))).body[0].body  # type: ignore[attr-defined]
    found = []
    for statement, after in pairwise(body):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            value = ast.unparse(statement.value) if statement.value else ""
            found.append((ast.unparse(statement.target), value, markdown(str(after.value.value))))
    return found
