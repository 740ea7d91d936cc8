"""Parts of conditions: of CHECKs, in few words, as PostgreSQL reads them anew for each write; and a payload's value as text."""

from __future__ import annotations

from typing import Any, Final

from django.db.models import BooleanField, CharField, F, Func, Transform
from django.db.models.functions import Coalesce, Greatest, Least
from django.db.models.lookups import In


class OneOf(In):
    """Whether a text is one of several words of ours: on PostgreSQL with these as one array, which is kept as it is."""

    def as_postgresql(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        """Write it."""
        text, parameters = self.process_lhs(compiler, connection)
        return f"{text} = ANY (%s::varchar[])", [*parameters, "{" + ",".join(self.rhs) + "}"]


class IsSet(Transform):
    """Whether a column is not NULL. It can be compared with something, and be asked of a value, which ``IsNull`` cannot."""

    template = "(%(expressions)s IS NOT NULL)"
    output_field = BooleanField()


class _SkipsNull(Func):
    """As PostgreSQL has it: of what is NULL, the first stands in."""

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Write it."""
        first, *others = self.get_source_expressions()
        whole = self.copy()
        whole.set_source_expressions([first, *(Coalesce(other, first) for other in others)])
        return super(_SkipsNull, whole).as_sqlite(compiler, connection, **context)


class EarliestOf(_SkipsNull, Least):
    """The first of several dates; the first one named is never NULL."""


class LatestOf(_SkipsNull, Greatest):
    """The last of several dates; the first one named is never NULL."""


# The values of true and false are 1 and 0 there.
_ON_SQLITE: Final = (
    "(SELECT CAST(CASE WHEN pair.type IN ('true', 'false') THEN pair.type ELSE pair.value END AS TEXT)"
    " FROM JSON_EACH({column}) AS pair WHERE pair.key = %s)"
)


class PayloadText(Func):
    """The value of a key at the top of the payload as text: ``12``, ``true``, ``gold``. NULL: there is no such key."""

    output_field = CharField()

    def __init__(self, key: str) -> None:
        super().__init__(F("payload"))
        self.key = key

    def as_postgresql(self, compiler: Any, connection: Any, **_context: Any) -> tuple[str, tuple[Any, ...]]:  # noqa: ARG002
        column, values = compiler.compile(self.source_expressions[0])
        return f"({column} ->> %s::text)", (*values, self.key)

    def as_sqlite(self, compiler: Any, connection: Any, **_context: Any) -> tuple[str, tuple[Any, ...]]:  # noqa: ARG002
        column, values = compiler.compile(self.source_expressions[0])
        return _ON_SQLITE.format(column=column), (*values, self.key)
