"""Options of commands that more than one of them takes: pairs, lookups, and lengths of time."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS, connections
from django.utils.dateparse import parse_duration
from django.utils.translation import gettext as _

from timeline.exceptions import InvalidInput, TimelineError, UnreadableEntity
from timeline.operations.sets import BATCH
from timeline.payloads import is_encodable

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_SHORT: Final = re.compile(r"(\d{1,6})([smhd])")


def add_rows_options(parser: CommandParser, *, actor: str) -> None:
    """Let a command take what those have in common that begin runs for rows: which rows, whether to do it, and how."""
    parser.add_argument(
        "--filter", action="append", default=[], metavar="LOOKUP=VALUE", help="Only these rows, as in filter()."
    )
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--apply", action="store_true", help="Do it.")
    choice.add_argument("--dry-run", action="store_true", help="Only show what it would do: that is so anyway.")
    parser.add_argument("--batch", type=int, default=BATCH, help="Rows a transaction (default: %(default)s).")
    parser.add_argument("--actor", default=actor, help="Who does it (default: %(default)s).")
    add_database_option(parser)


def add_database_option(
    parser: CommandParser,
    *,
    default: str | None = DEFAULT_DB_ALIAS,
    # As argparse takes it.
    help: str = "Database alias (default: %(default)s).",
) -> None:
    """Let a command take the alias of a database, and refuse one that the settings do not have."""
    parser.add_argument("--database", type=_alias, default=default, help=help)


def pairs(option: str, given: Sequence[str], form: str, *, at_last: bool = False) -> dict[str, str]:
    """Read ``a=b``, any number of times. A value may have a ``=`` itself, a state as well as a lookup hardly has one."""
    found: dict[str, str] = {}
    for text in given:
        if not is_encodable(text):  # A shell gives any bytes; no database takes them.
            raise CommandError(_("%(option)s %(text)s is no text in UTF-8.") % {"option": option, "text": ascii(text)})
        left, sign, right = text.rpartition("=") if at_last else text.partition("=")
        if not sign or not (right or not at_last):
            raise CommandError(
                _("%(option)s %(text)r: give %(form)s.") % {"option": option, "text": text, "form": form}
            )
        if found.setdefault(left, right) != right:
            raise CommandError(_("%(option)s names %(left)r twice.") % {"option": option, "left": left})
    return found


def lookups(given: Sequence[str]) -> dict[str, Any]:
    """Read ``--filter LOOKUP=VALUE``, any number of times, as what ``filter()`` takes."""
    return dict(map(_lookup, pairs("--filter", given, "LOOKUP=VALUE").items()))


def said_of_some(error: TimelineError, *, written: bool) -> str:
    """Tell an error that has stopped a command for many rows: whose it is, and that the batches before it stand."""
    whose, names_it = error.entity if isinstance(error, InvalidInput) else None, isinstance(error, UnreadableEntity)
    said = str(error) if whose is None or names_it else f"{whose}: {error}"
    if written and (whose is not None or names_it):
        said += " " + _("What was begun in the batches before it stands. Mend it, and call it again.")
    return said


def length(option: str, text: str | None) -> timedelta | None:
    """Read a length of time such as ``6h``, ``90m`` or ``00:30:00``; None: none was given."""
    if text is None:
        return None
    short = _SHORT.fullmatch(text)
    found = timedelta(**{_UNITS[short[2]]: int(short[1])}) if short else parse_duration(text)
    if found is None:
        said = {"option": option, "text": text}
        raise CommandError(_("%(option)s: %(text)r is no duration. Give for example 6h or 00:30:00.") % said)
    return found


def _alias(text: str) -> str:
    if text not in connections:
        said = {"alias": ascii(text), "known": ", ".join(sorted(connections))}
        raise ArgumentTypeError(_("%(alias)s is no database here. Give one of %(known)s.") % said)
    return text


def _lookup(given: tuple[str, str]) -> tuple[str, Any]:
    """What a shell can only give as text."""
    name, value = given
    if name.endswith("__isnull") and value.lower() in ("true", "false"):
        return name, value.lower() == "true"
    return name, value.split(",") if name.endswith(("__in", "__range")) else value
