"""Raw SQL: one statement a file, ``timeline/sql/<verb>.<vendor>.sql``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from django.core.exceptions import ImproperlyConfigured

from timeline.lifecycle import ALLOWED_PAIRS, FINAL, LEASED, WAITING


@cache
def statement(verb: str, vendor: str) -> str:
    """
    Read a statement. Values reach it as parameters only; the lifecycle's sets stand in it as ``{final}``,
    ``{leased}``, ``{waiting}`` and ``{pairs}``.

    Args:
        verb: First part of the file's name.
        vendor: Of the database, as ``connection.vendor`` says it.

    Raises:
        ImproperlyConfigured: if there is none for this vendor.
    """
    file = files("timeline") / "sql" / f"{verb}.{vendor}.sql"
    if not file.is_file():
        raise ImproperlyConfigured(f"timeline does not run on {vendor} yet. Use SQLite or PostgreSQL.")
    text = file.read_text(encoding="utf-8")
    pairs = _quoted(f"{source} {target}" for source, target in ALLOWED_PAIRS)
    sets = {"final": _quoted(FINAL), "leased": _quoted(LEASED), "waiting": _quoted(WAITING), "pairs": pairs}
    for name, words in sets.items():
        text = text.replace(f"{{{name}}}", words)
    return text


def as_list(values: Iterable[str], vendor: str) -> str | list[str]:
    """Write texts as the one parameter that a statement reads a list from."""
    return list(values) if vendor == "postgresql" else json.dumps(list(values))


def _quoted(words: Iterable[str]) -> str:
    return ", ".join(f"'{word}'" for word in sorted(words))
