"""How PostgreSQL plans statements."""

from __future__ import annotations

import re
from contextlib import contextmanager

from django.db import connection, transaction

from timeline.dialects import POSTGRESQL
from timeline.store.kept_statements import KEPT


def plan_of(sql, parameters):
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {sql}", parameters)
        return "\n".join(line for [line] in cursor.fetchall())


def plans_made_by(call, *, about="timeline_scheduledtask", guided=True, explain="EXPLAIN"):
    """
    The plan of each statement about a table that a call makes, as it is when it makes it; or would be, were it not guided.
    """
    plans = []

    def note(execute, sql, parameters, many, context):
        kept = next((each for each in KEPT if f" {each.function}(" in sql), None)
        if kept is not None and about in kept.statement(POSTGRESQL):
            plans.append(plan_kept(kept, parameters, explain))
        elif about in sql:
            plans.append(plan_of(sql, parameters))
        return execute(sql, parameters, many, context)

    def plan_of(sql, parameters):
        told, _semicolon, asked = sql.rpartition(";\n")
        with connection.connection.transaction(force_rollback=True), connection.connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_sort = on; SET LOCAL enable_incremental_sort = on")  # As before the test.
            if told and guided:
                cursor.execute(told)
            asked = asked.partition("\n; ")[0]  # Without what sets back what it was told.
            cursor.execute(f"{explain} {asked}", parameters)
            return "\n".join(line for [line] in cursor.fetchall())

    with connection.execute_wrapper(note):
        call()
    return plans


def plan_kept(kept, parameters, explain="EXPLAIN"):
    """The plan of a statement that is a function: made without its arguments, with the settings of the function."""
    places = {f"its_{name}": f"${number}" for number, name in enumerate(kept.arguments, 1)}
    text = re.sub(r"\bits_\w+\b", lambda word: places.get(word[0], word[0]), kept.statement(POSTGRESQL))
    given = ", ".join(f"%({name})s::{kind}" for name, kind in kept.arguments.items())
    with connection.connection.transaction(force_rollback=True), connection.connection.cursor() as cursor:
        for name, value in {**kept.settings, "plan_cache_mode": "force_generic_plan"}.items():
            cursor.execute(f"SET LOCAL {name} = {value}")
        cursor.execute(f"PREPARE kept({', '.join(kept.arguments.values())}) AS {text}")
        cursor.execute(f"{explain} EXECUTE kept({given})", parameters)
        plan = "\n".join(line for [line] in cursor.fetchall())
        cursor.execute("DEALLOCATE kept")
        return plan


@contextmanager
def around_tests(blocker, tables, fill):
    """
    A transaction around those of a module's tests, for what takes seconds to fill: it is filled once, and none of it stays.

    Tables begin as new files. Pages that other tests left behind would be known as pages without rows; and what is left behind
    here, each later test would read that reads all of a table.

    Args:
        blocker: The fixture ``django_db_blocker``; ask for ``django_db_setup`` as well.
        tables: Those that are filled, by comma.
        fill: Fills them, by a cursor.
    """
    with blocker.unblock(), transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f"TRUNCATE {tables} CASCADE")
            fill(cursor)
        connection.check_constraints()  # Else each test would do so at its end, for all the rows.
        yield
        transaction.set_rollback(True)


class Post:
    """A broker that takes everything."""

    def connect(self):
        """It is there."""

    def send(self, batch, *, using):
        """It is taken."""
