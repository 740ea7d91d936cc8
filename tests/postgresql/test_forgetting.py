"""Forgetting answers: what is kept is not read to find out that nothing is to be forgotten."""

from __future__ import annotations

import pytest
from django.db import connection

from timeline.clocks import MachineTime
from timeline.models import Answer
from timeline.operations.repeated_requests import forget_answers

pytestmark = pytest.mark.django_db


@pytest.fixture(params=["fresh", "stale"])
def _kept(request):
    """Answers of this minute, in a table whose statistics know of them, or know an empty table."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE timeline_answer")
        Answer.objects.bulk_create(
            Answer(key=str(number), fingerprint="f", status=200, headers={}, body="-" * 800, made_at=MachineTime())
            for number in range(5000)
        )
        if request.param == "fresh":
            cursor.execute("ANALYZE timeline_answer")


def told_by(call):
    """What PostgreSQL tells of how it worked off each question about answers."""
    told = []

    def explain(execute, sql, parameters, many, context):
        if sql.startswith("SELECT") and "timeline_answer" in sql:
            with connection.connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN (ANALYZE, TIMING off) {sql}", parameters)
                told.append("\n".join(line for [line] in cursor.fetchall()))
        return execute(sql, parameters, many, context)

    with connection.execute_wrapper(explain):
        call()
    return told


@pytest.mark.usefixtures("_kept")
def test_what_is_kept_is_not_read():
    [told] = told_by(lambda: forget_answers(using="default"))

    assert "Index Cond: (made_at <" in told, told
    assert "Removed by Filter" not in told, told
