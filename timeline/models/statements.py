"""Parts of statements: optional lines, arrays, and names of types."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models import Field

_CONDITION = re.compile(r"(?P<text>.*?)(?:  -- if (?P<no>not )?(?P<name>\w+))?")


def narrowed(text: str, names: Collection[str]) -> str:
    """
    Leave out the optional lines of a statement that are not needed: lines that end in ``-- if name`` if the name is not among
    the given ones, and lines that end in ``-- if not name`` if it is.
    """
    lines = (_CONDITION.fullmatch(line) for line in text.splitlines())
    return "\n".join(
        line["text"] for line in lines if line and (not line["name"] or (line["name"] in names) is not bool(line["no"]))
    )


def as_array(texts: Sequence[str | None]) -> str:
    """An array as one text that PostgreSQL reads. It is made as fast as possible, since there may be thousands of items."""
    if not texts or None in texts:
        return "{" + ",".join("NULL" if text is None else f'"{_escaped(text)}"' for text in texts) + "}"
    whole = cast("Sequence[str]", texts)
    plain = '","'.join(whole)
    if "\\" in plain or plain.count('"') != 2 * (len(whole) - 1):
        plain = '","'.join(map(_escaped, whole))
    return f'{{"{plain}"}}'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def element_type(field: Field[Any, Any], connection: BaseDatabaseWrapper) -> str:
    """
    Name of the type, without a length: a cast to ``varchar(9)`` would cut a value that is too long; the column refuses it.
    """
    return str(field.rel_db_type(connection)).partition("(")[0]
