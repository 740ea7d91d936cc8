"""Constraints that later migrations add: first for rows to come, then for those that are there."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, connections

from tests.upgrading.one_by_one import migrate, one_by_one

pytestmark = pytest.mark.only_postgresql


def not_asked_of_all(using: str) -> set[str]:
    """Constraints that were not asked of the rows that are there."""
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT conname FROM pg_constraint WHERE NOT convalidated")
        return {name for [name] in cursor.fetchall()}


def end_for(reason: str, *, using: str) -> None:
    """Write a task that ended for a reason, as the tables are then."""
    columns = {
        "entity_label": "",
        "entity_id": "",
        "task_key": "trial.remind",
        "occurrence": reason,
        "state": "cancelled",
        "queue": "default",
        "anchor": "",
        "definition_hash": "",
        "payload": "{}",
        "worker": "",
        "error": "",
        "reason_code": reason,
        "reason": "",
        "actor": "",
    }
    numbers = ("revision", "seq", "priority", "attempt", "failures", "lost", "max_attempts")
    times = ("nominal_at", "scheduled_at", "created_at", "finished_at")
    with connections[using].cursor() as cursor:
        cursor.execute(
            f"INSERT INTO timeline_scheduledtask (id, {', '.join((*columns, *numbers, *times))})"  # noqa: S608 (constants)
            f" VALUES (gen_random_uuid(), {', '.join(['%s'] * len(columns) + ['1'] * len(numbers) + ['now()'] * len(times))})",
            list(columns.values()),
        )


class TestTheReasonOfATask:
    def test_is_asked_of_rows_to_come_at_once_and_of_all_in_the_end(self, fresh):
        with one_by_one():
            migrate("0016", using=fresh)
        end_for("done", using=fresh)

        migrate("0013", using=fresh)
        end_for("timeout", using=fresh)
        with pytest.raises(IntegrityError, match="timeline_task_end_has_reason"):
            end_for("whatever", using=fresh)
        asked_later = not_asked_of_all(fresh)
        migrate(using=fresh)

        assert asked_later == {"timeline_task_end_has_reason"}
        assert not_asked_of_all(fresh) == set()
