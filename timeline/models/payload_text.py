"""One value of a payload as text, for conditions."""

from __future__ import annotations

from typing import Any, Final

from django.db.models import CharField, F, Func

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
