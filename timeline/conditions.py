"""Parts of the conditions of CHECKs, in few words: PostgreSQL reads them anew for each statement that writes to the table."""

from __future__ import annotations

from typing import Any

from django.db.models import BooleanField, Func, Transform
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
