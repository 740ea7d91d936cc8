"""Parts of statements: optional lines, arrays, and names of types."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, cast

from django.core.exceptions import EmptyResultSet
from django.db.models import CharField, F, Field, IntegerField, UUIDField
from django.db.models.lookups import In

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models import Field
    from django.db.models.sql.compiler import SQLCompiler


_CONDITION = re.compile(r"(?P<text>.*?)(?:  -- if (?P<no>not )?(?P<name>\w+))?")


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
