"""
The differences between PostgreSQL and SQLite, and the text of their statements: optional lines, arrays, names of types.

Except for migrations, which are history, no other module compares the names of databases.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, cast

from django.core.exceptions import EmptyResultSet, ImproperlyConfigured
from django.db import connections
from django.db.models import CharField, F, Field, IntegerField, UUIDField
from django.db.models.lookups import In

from timeline.lifecycle import ALLOWED_PAIRS, AT_REST, FINAL, LEASED, OPEN, WAITING

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.sql.compiler import SQLCompiler

_CONDITION = re.compile(r"(?P<text>.*?)(?:  -- if (?P<no>not )?(?P<name>\w+))?")
_WHOLE_LINE_COMMENT = re.compile(r"^ *--.*\n", re.MULTILINE)


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Dialect:
    """
    One kind of database: its features, how it takes values, and its statements.

    Args:
        vendor: As ``connection.vendor`` has it, and the names of its files in ``timeline/sql``.
        words: Placeholder → text, for statements that both databases share; ``change`` in it is the change written; see
            ``columns.sql``.
        has_one_writer: Whether only one transaction writes at a time. Then rows are not locked, and a writer sees all that was
            committed.
        has_set_statements: Whether one statement can find, lock and change rows, and write to several tables. Otherwise rows
            are read first.
        has_settings: Whether it has settings that end with the transaction, such as how long a statement may take.
        has_arrays: Whether a parameter can be an array. Otherwise a list is JSON.
        has_time_types: Whether there are types for moments and lengths. Otherwise a moment is text, a length is in seconds.
        has_strict_casts: Whether a cast fails if the text is not a value of the type. Otherwise it reads as much as it can.
        has_foreign_keys: Whether our tables have them. Otherwise triggers keep rows to which others refer.
        has_trigger_functions: Whether triggers call functions that can be replaced. Otherwise the old trigger is dropped first.
        can_notify: Whether connections can tell each other that something is due.
        instant: How a statement reads ``{0}``, a column with a moment, to calculate with it; NULL for other values.
        midnight: The same for a column with a day: when it begins in UTC.
    """

    vendor: str
    words: Mapping[str, str]
    has_one_writer: bool
    has_set_statements: bool
    has_settings: bool
    has_arrays: bool
    has_time_types: bool
    has_strict_casts: bool
    has_foreign_keys: bool
    has_trigger_functions: bool
    can_notify: bool
    instant: str
    midnight: str

    def sql(self, verb: str, *, package: str = "timeline") -> str:
        """
        The text of ``sql/<verb>.<vendor>.sql`` or ``sql/<verb>.sql`` in the package, without comment lines;
        ``FileNotFoundError``.

        Values are parameters only. ``{final}``, ``{leased}``, ``{open}``, ``{waiting}``, ``{at_rest}`` and ``{pairs}`` stand
        for sets of the lifecycle.
        """
        return _read(self, verb, package)

    def list_of(self, values: Iterable[str]) -> str | list[str]:
        """The one parameter from which a statement reads a list of texts."""
        return list(values) if self.has_arrays else json.dumps(list(values))

    def entities_of(self, refs: Iterable[tuple[str, str]]) -> dict[str, Any]:
        """The parameters of entities: two lists, ``labels`` and ``ids``; or one list of pairs, ``entities``."""
        refs = list(refs)
        if self.has_arrays:
            return {"labels": [label for label, _id in refs], "ids": [key for _label, key in refs]}
        return {"entities": json.dumps(refs)}

    def length_of(self, length: timedelta) -> timedelta | float:
        """A length of time as a parameter: unchanged, or in seconds."""
        return length if self.has_time_types else length.total_seconds()

    def ago(self, length: timedelta) -> timedelta | str:
        """How long ago, as a parameter: a length that is subtracted; or text such as ``-90.000 seconds`` that is added."""
        return length if self.has_time_types else f"{(-length).total_seconds():+.3f} seconds"


POSTGRESQL: Final = Dialect(
    vendor="postgresql",
    words={
        "at": "%(at)s::timestamptz",
        "json": "::jsonb",
        "machine_now": "clock_timestamp()",
        "machine_now_and_lease": "clock_timestamp() + change.lease",
        "entities_on_hold": (
            "SELECT name ->> 0, name ->> 1 FROM timeline_hold, jsonb_array_elements(names) AS name WHERE released_at IS NULL"
        ),
        "kinds_on_hold": (
            "(SELECT json_agg(json_build_array(scope, target))::text"
            " FROM (SELECT DISTINCT scope, target FROM timeline_hold WHERE released_at IS NULL) AS open)"
        ),
    },
    has_one_writer=False,
    has_set_statements=True,
    has_settings=True,
    has_arrays=True,
    has_time_types=True,
    has_strict_casts=True,
    has_foreign_keys=False,
    has_trigger_functions=True,
    can_notify=True,
    instant="{0}",
    midnight="({0}::timestamp AT TIME ZONE 'UTC')",
)
_SECONDS: Final = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9]"
_IN_MICROSECONDS: Final = (
    f"(CASE WHEN {{0}} GLOB '{_SECONDS}' OR {{0}} GLOB '{_SECONDS}.[0-9][0-9][0-9][0-9][0-9][0-9]'"
    " THEN CAST(strftime('%%s', substr({0}, 1, 19)) AS INTEGER) * 1000000"
    " + CAST(substr({0} || '.000000', 21, 6) AS INTEGER) END)"
)
SQLITE: Final = Dialect(
    vendor="sqlite",
    words={
        "at": "%(at)s",
        "json": "",
        "machine_now": "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now')",
        "machine_now_and_lease": "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', change.lease)",
        "entities_on_hold": (
            "SELECT json_extract(name.value, '$[0]'), json_extract(name.value, '$[1]')"
            " FROM timeline_hold, json_each(names) AS name WHERE released_at IS NULL"
        ),
        "kinds_on_hold": (
            "(SELECT json_group_array(json_array(scope, target))"
            " FROM (SELECT DISTINCT scope, target FROM timeline_hold WHERE released_at IS NULL) AS open)"
        ),
    },
    has_one_writer=True,
    has_set_statements=False,
    has_settings=False,
    has_arrays=False,
    has_time_types=False,
    has_strict_casts=False,
    has_foreign_keys=True,
    has_trigger_functions=False,
    can_notify=False,
    instant=_IN_MICROSECONDS,
    midnight=_IN_MICROSECONDS.replace("{0}", "({0} || ' 00:00:00')"),
)
_BY_VENDOR: Final = {dialect.vendor: dialect for dialect in (POSTGRESQL, SQLITE)}


@cache
def dialect_of(using: str) -> Dialect:
    """The dialect of a database; ``ImproperlyConfigured`` if we do not support its kind."""
    vendor = connections[using].vendor
    if vendor not in _BY_VENDOR:
        raise ImproperlyConfigured(f"timeline does not run on {vendor} yet. Use SQLite or PostgreSQL.")
    return _BY_VENDOR[vendor]


def known_among(aliases: Iterable[str]) -> Iterator[tuple[str, Dialect]]:
    """Those of a host's databases that we support, each with its dialect. A host may have other databases, too."""
    for alias in aliases:
        if (dialect := _BY_VENDOR.get(connections[alias].vendor)) is not None:
            yield alias, dialect


def is_by_psycopg3(connection: BaseDatabaseWrapper) -> bool:
    """Whether a connection is to PostgreSQL with psycopg 3. Django also accepts psycopg2, which has fewer features."""
    return connection.vendor == POSTGRESQL.vendor and hasattr(getattr(connection, "Database", None), "adapters")


@cache
def _read(dialect: Dialect, verb: str, package: str) -> str:
    folder = files(package) / "sql"
    its_own = folder / f"{verb}.{dialect.vendor}.sql"
    file = its_own if its_own.is_file() else folder / f"{verb}.sql"
    text = _WHOLE_LINE_COMMENT.sub("", file.read_text(encoding="utf-8"))
    pairs = _quoted(f"{source} {target}" for source, target in ALLOWED_PAIRS)
    known = {"final": FINAL, "leased": LEASED, "open": OPEN, "waiting": WAITING, "at_rest": AT_REST}
    sets = {name: _quoted(states) for name, states in known.items()} | {"pairs": pairs}
    for name, words in (sets | dict(dialect.words)).items():
        text = text.replace(f"{{{name}}}", words)
    return text


def _quoted(words: Iterable[str]) -> str:
    return ", ".join(f"'{word}'" for word in sorted(words))


def narrowed(text: str, names: Collection[str]) -> str:
    """A statement without its optional lines: ``-- if name`` needs the name among the given, ``-- if not name`` its absence."""
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
    """Name of the type, without a length: a cast to ``varchar(9)`` would cut a long value; the column refuses it."""
    return str(field.rel_db_type(connection)).partition("(")[0]


class Among(In):
    """``pk__in`` for hundreds of keys: on PostgreSQL ``= ANY(array)``, as an ``IN`` of a hundred costs half a millisecond."""

    def __init__(self, keys: Iterable[Any], *, written: str | None = None) -> None:
        """Take keys. If they are all different, and the caller has the result of ``array_of`` for them: this, too."""
        super().__init__(F("pk"), list(keys))
        self._written = written

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, tuple[Any, ...]]:
        field = target_of(self.lhs.output_field)
        if not fits_in_array(field):
            return super().as_sql(compiler, connection)
        if not self.rhs:
            raise EmptyResultSet
        left, parameters = self.process_lhs(compiler, connection)
        array = self._written or array_of(field, dict.fromkeys(self.rhs), connection)
        return f"{left} = ANY(%s::{element_type(field, connection)}[])", (*parameters, array)


def target_of(field: Field[Any, Any]) -> Field[Any, Any]:
    """The field itself, or the one to which it refers in the end: the key of a grandchild is that of its parent's parent."""
    while (target := getattr(field, "target_field", field)) is not field:
        field = target
    return field


def fits_in_array(field: Field[Any, Any]) -> bool:
    """Whether PostgreSQL can read the text of its values."""
    return isinstance(field, IntegerField | UUIDField | CharField)


def array_of(field: Field[Any, Any], keys: Iterable[Any], connection: BaseDatabaseWrapper) -> str:
    """The keys as one parameter."""
    return as_array([str(field.get_db_prep_value(key, connection)) for key in keys])


def sqlstate_of(error: BaseException) -> str:
    """The SQLSTATE of an error of Django's (``sqlstate`` in psycopg 3, ``pgcode`` in psycopg2); empty: it has none."""
    cause = error.__cause__
    return str(getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None) or "")
