"""Raw SQL: one statement a file, ``timeline/sql/<verb>.<vendor>.sql``; or ``<verb>.sql``, what all databases are told alike."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, cast

from django.core.exceptions import ImproperlyConfigured

from timeline.lifecycle import ALLOWED_PAIRS, FINAL, LEASED, WAITING

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models import Field

# Words of each database, in statements that are the same else. ``change`` is what is written, see ``columns.sql``.
_WORDS: Final = {
    "postgresql": {
        "at": "%(at)s::timestamptz",
        "json": "::jsonb",
        "machine_now": "clock_timestamp()",
        "machine_now_and_lease": "clock_timestamp() + change.lease",
    },
    "sqlite": {
        "at": "%(at)s",
        "json": "",
        "machine_now": "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now')",
        "machine_now_and_lease": "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', change.lease)",
    },
}
_WHOLE_LINE_COMMENT = re.compile(r"^ *--.*\n", re.MULTILINE)
_CONDITION = re.compile(r"(?P<text>.*?)(?:  -- if (?P<no>not )?(?P<name>\w+))?")


@cache
def statement(verb: str, vendor: str) -> str:
    """
    Read a statement, without its lines of comment. Values reach it as parameters only; the lifecycle's sets stand in it as
    ``{final}``, ``{leased}``, ``{waiting}`` and ``{pairs}``, and the words of each database by their names.

    Args:
        verb: First part of the file's name.
        vendor: Of the database, as ``connection.vendor`` says it.

    Raises:
        ImproperlyConfigured: if there is none for this vendor.
    """
    folder = files("timeline") / "sql"
    there = [file for name in (f"{verb}.{vendor}.sql", f"{verb}.sql") if (file := folder / name).is_file()]
    if not there or vendor not in _WORDS:
        raise ImproperlyConfigured(f"timeline does not run on {vendor} yet. Use SQLite or PostgreSQL.")
    text = _WHOLE_LINE_COMMENT.sub("", there[0].read_text(encoding="utf-8"))
    pairs = _quoted(f"{source} {target}" for source, target in ALLOWED_PAIRS)
    sets = {"final": _quoted(FINAL), "leased": _quoted(LEASED), "waiting": _quoted(WAITING), "pairs": pairs}
    for name, words in (sets | _WORDS[vendor]).items():
        text = text.replace(f"{{{name}}}", words)
    return text


def narrowed(text: str, names: Collection[str]) -> str:
    """
    Leave out of a statement what nobody asks of it: lines that end in ``-- if name`` where the name is not among the given
    ones, or in ``-- if not name`` where it is.
    """
    lines = (_CONDITION.fullmatch(line) for line in text.splitlines())
    return "\n".join(
        line["text"] for line in lines if line and (not line["name"] or (line["name"] in names) is not bool(line["no"]))
    )


def as_list(values: Iterable[str], vendor: str) -> str | list[str]:
    """Write texts as the one parameter that a statement reads a list from."""
    return list(values) if vendor == "postgresql" else json.dumps(list(values))


def named_in(refs: Iterable[tuple[str, str]], vendor: str) -> dict[str, Any]:
    """Write labels and ids of entities as the parameters that a statement reads them from: two lists, or one of pairs."""
    refs = list(refs)
    if vendor == "postgresql":
        return {"labels": [label for label, _id in refs], "ids": [key for _label, key in refs]}
    return {"entities": json.dumps(refs)}


def as_array(texts: Sequence[str | None]) -> str:
    """Write an array as PostgreSQL reads it from one text; as fast as it goes, since there may be thousands."""
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
    """Name its type without a length: a cast to ``varchar(9)`` would cut what is too long, where the column refuses it."""
    return str(field.rel_db_type(connection)).partition("(")[0]


def _quoted(words: Iterable[str]) -> str:
    return ", ".join(f"'{word}'" for word in sorted(words))
