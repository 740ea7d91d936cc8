"""Who holds an old snapshot, for which PostgreSQL keeps dead rows of tasks, so that polls slow down."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connections
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from timeline.dialects import dialect_of
from timeline.timing import told_time

LONG: Final = timedelta(minutes=5)  # A shorter transaction is nothing to tell.
MANY: Final = 50_000  # Dead rows: about 17,000 tasks that were run meanwhile.
TRANSACTIONS: Final = 1_000  # Where it is not known since when: so many have begun since.
LONGEST: Final = 80  # Characters of a query.


@dataclass(frozen=True, slots=True, kw_only=True)
class OldSnapshot:
    """
    The oldest snapshot, and who holds it.

    Args:
        kind: ``session``, ``prepared`` (a prepared transaction) or ``slot`` (of replication).
        name: The user of the session or transaction; the name of the slot.
        since, asked_at: When the transaction and its last query began; None: not known, or a slot.
        state: Of the session, such as ``idle in transaction``; empty: not known.
        dead_rows: Of the table of tasks.
        query: The beginning of its last query. It may contain people's data: show it to operators only.
    """

    kind: str
    name: str
    pid: int | None
    since: datetime | None
    asked_at: datetime | None
    state: str
    dead_rows: int
    query: str

    def as_data(self) -> dict[str, Any]:
        names = ("kind", "name", "pid", "since", "asked_at", "state", "dead_rows")
        return {name: getattr(self, name) for name in names}

    @property
    def told(self) -> str:
        """What it is and what to do, in a sentence, without the query."""
        parts = {
            "name": self.name,
            "pid": self.pid,
            "at": told_time(self.since) if self.since is not None else "",
            "count": number_format(self.dead_rows, force_grouping=True),
        }
        return self._sentence() % parts

    def _sentence(self) -> str:
        if self.kind == "slot":
            return _(
                "The replication slot %(name)s holds an old snapshot, so PostgreSQL keeps %(count)s dead rows of tasks, and "
                "polls slow down. See to its reader, or drop the slot."
            )
        if self.kind == "prepared":
            return _(
                "A transaction that %(name)s prepared at %(at)s has not ended, so PostgreSQL keeps %(count)s dead rows of "
                "tasks, and polls slow down. Commit it, or roll it back."
            )
        if self.since is None:
            return _(
                "Session %(pid)s of %(name)s holds an old snapshot, so PostgreSQL keeps %(count)s dead rows of tasks, and "
                "polls slow down. End its transaction, or let it read from a replica."
            )
        return _(
            "Session %(pid)s of %(name)s is in a transaction since %(at)s, so PostgreSQL keeps %(count)s dead rows of tasks, "
            "and polls slow down. End it, or let it read from a replica."
        )


def old_snapshot(*, using: str) -> OldSnapshot | None:
    """The oldest snapshot, if held for five minutes while many rows are dead; None on SQLite. One statement."""
    dialect = dialect_of(using)
    if dialect.has_one_writer:
        return None
    asked: dict[str, Any] = {"long": LONG, "many": MANY, "transactions": TRANSACTIONS, "longest": LONGEST}
    with connections[using].cursor() as cursor:
        cursor.execute(dialect.sql("snapshot_holder"), asked)
        row = cursor.fetchone()
    return _read(json.loads(row[0])) if row else None


def _read(found: dict[str, Any]) -> OldSnapshot:
    times = {name: datetime.fromisoformat(at) if (at := found[name]) else None for name in ("since", "asked_at")}
    texts = {name: " ".join((found[name] or "").split()) for name in ("name", "state", "query")}
    return OldSnapshot(**{**found, **times, **texts})
