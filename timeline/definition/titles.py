"""What people call a task, and what its code says of it: ``@task(title=…)`` and docstrings."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import cleandoc
from typing import Any, Final

from django.utils.functional import Promise

LONGEST_TITLE: Final = 100


def title_problems(title: object) -> Iterator[tuple[str, str]]:
    """List what is wrong with a title, as (problem, remedy). What is translated later is not looked into."""
    if not (isinstance(title, Promise) or _is_line(title)):
        remedy = f"Use text of one line, {LONGEST_TITLE} characters at most, or a lazy translation of it."
        yield f"has title = {title!a:.60}.", remedy


def _is_line(text: object) -> bool:
    return isinstance(text, str) and len(text) <= LONGEST_TITLE and text.isprintable() and text == text.strip()


def first_paragraph(of: Any) -> str:
    """The first paragraph of a docstring of its own, in one line; what stands in double backticks stands there without them."""
    return " ".join(cleandoc(of.__doc__ or "").partition("\n\n")[0].replace("``", "").split())
