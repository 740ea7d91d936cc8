"""What PostgreSQL does for an open page that asks each second: it goes by indexes, however many rows there are."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import RequestFactory

from tests.testapp.models import Order
from timeline.admin.watching import of_all, of_entity, of_task
from timeline.models import ref_of

pytestmark = pytest.mark.django_db


def plans_of(call):
    """What PostgreSQL would do for each statement of a call, where it may avoid reading whole tables."""
    told = {}

    def explain(execute, sql, parameters, many, context):
        if sql.startswith("SELECT"):
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
        request = RequestFactory().get("/", {"label": ref.label, "id": ref.id})

        for name, call in {
            "all": lambda: of_all(request, "default"),
            "task": lambda: of_task(request, "default", object_id=row.pk),
            "entity": lambda: of_entity(request, "default"),
        }.items():
            plans = plans_of(call)
            assert len(plans) >= 2, name
            for sql, plan in plans.items():
                assert "Index" in plan, (name, sql, plan)
                assert "Seq Scan" not in plan, (name, sql, plan)
                # The newest by their keys, without sorting; or the rows of one thing alone.
                assert "Sort" not in plan if "LIMIT" in sql else "Index Cond" in plan, (name, sql, plan)
