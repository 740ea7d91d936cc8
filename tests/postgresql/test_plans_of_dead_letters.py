"""Dead letters are found by an index, however many tasks have ended."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.postgresql.plans import around_tests
from tests.rows import make_task
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.reading.dead_letters import dead_letters

pytestmark = [pytest.mark.only_postgresql, pytest.mark.django_db]

ONE = "1" * 16


@pytest.fixture(scope="module")
def _many(django_db_setup, django_db_blocker):
    """A hundred thousand tasks that have ended, one in a hundred of them discarded; filled once."""
    with around_tests(django_db_blocker, "timeline_scheduledtask", fill):
        yield


def fill(cursor):
    columns = [column.column for column in ScheduledTask._meta.concrete_fields]
    names = ", ".join(f'"{name}"' for name in columns)
    others = {"id": "gen_random_uuid()", "occurrence": "'other ' || kind.state || number"}
    values = ", ".join(others.get(name, f'kind."{name}"') for name in columns)
    make_task(state=State.COMPLETED)
    make_task(state=State.DISCARDED, fingerprint=ONE)
    cursor.execute(
        f"INSERT INTO timeline_scheduledtask ({names}) SELECT {values} FROM timeline_scheduledtask AS kind,"  # noqa: S608
        " generate_series(1, 99000) AS number WHERE kind.state = 'completed' OR number <= 1000"
    )
    cursor.execute("ANALYZE timeline_scheduledtask")


@pytest.mark.usefixtures("_many")
@pytest.mark.parametrize("group", ["", ONE])
def test_reads_discarded_rows_only(group):
    with CaptureQueriesContext(connection) as asked:
        assert dead_letters(ScheduledTask.objects.all(), group)[0].count == 1001

    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {asked[0]['sql']}")
        plan = "\n".join(line for [line] in cursor.fetchall())
    # Of indexes that hold little else, PostgreSQL takes one or the other as its sample of the table falls.
    by_state = "timeline_task_ended" in plan and "Index Cond: ((state)::text = 'discarded'::text)" in plan
    assert any(f"timeline_task_{name}" in plan for name in ("dead", "failed", "alike")) or by_state, plan
    assert "Seq Scan on timeline_scheduledtask" not in plan, plan


@pytest.mark.usefixtures("_many")
def test_finds_the_next_few_of_a_group_without_sorting_all_of_it():
    """So that a group of a hundred thousand is redriven in a hundred times what one of a thousand takes."""
    group = ScheduledTask.objects.dead_letters(ONE).order_by("pk")
    middle = group.values_list("pk", flat=True)[500]

    plan = group.filter(pk__gt=middle)[:200].explain()

    assert "timeline_task_alike" in plan, plan
    assert "Sort" not in plan, plan
