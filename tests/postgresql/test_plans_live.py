"""What PostgreSQL does for an open page that asks each second: it goes by indexes, however many rows there are."""

from __future__ import annotations

import pytest
from django.db import connection

from tests.testapp.models import Order
from timeline.live.versions import EVERYTHING, OneEntity, OneTask
from timeline.models import ref_of

pytestmark = pytest.mark.django_db


def plans_of(call):
    """What PostgreSQL would do for each statement of a call, where it may avoid reading whole tables."""
    told = {}

    def explain(execute, sql, parameters, many, context):
        if sql.lstrip("(\n").startswith("SELECT"):
            with connection.connection.cursor() as cursor:
                cursor.execute(
                    "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off"
                )
                cursor.execute(f"EXPLAIN {sql}", parameters)
                told[sql] = "\n".join(line for [line] in cursor.fetchall())
        return execute(sql, parameters, many, context)

    with connection.execute_wrapper(explain):
        call()
    return told


class TestAnOpenPage:
    def test_of_each_kind_is_answered_from_indexes(self, make_task):
        order = Order.objects.create()
        ref = ref_of(order)
        row = make_task(entity_label=ref.label, entity_id=ref.id)
        subjects = {"all": EVERYTHING, "task": OneTask(row.pk), "entity": OneEntity(*ref)}
        OneTask(row.pk).mark("default")  # Finds the first of its revisions, once.

        for name, subject in subjects.items():
            [plan] = plans_of(lambda subject=subject: subject.mark("default")).values()
            assert "Index" in plan, (name, plan)
            assert "Seq Scan" not in plan, (name, plan)
            assert "Sort" not in plan, (name, plan)
