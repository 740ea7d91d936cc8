"""No page lets PostgreSQL compile what it asks in many parts: that takes longer than finding what is asked."""

from __future__ import annotations

import pytest
from django.db import connection
from django.urls import reverse

from tests.admin.conftest import ALL
from tests.postgresql.plans import plans_made_by

pytestmark = [pytest.mark.only_postgresql, pytest.mark.plans, pytest.mark.django_db]


@pytest.fixture
def viewer(person, browse):
    return browse(person("vera", *ALL, "view_hold"))


@pytest.fixture(autouse=True)
def _eager():
    """As over very many rows: each statement is compiled whose settings let it, on a server that can compile."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL jit = on; SET LOCAL jit_above_cost = 0")


@pytest.mark.parametrize("page", ["attention", "health", "holds", "inventory", "limits", "people"])
def test_compiles_nothing_of_many_parts(viewer, page):
    where = reverse(f"admin:timeline_scheduledtask_{page}")

    plans = plans_made_by(lambda: viewer.get(where))
    parts = [plan for plan in plans if "Subquery Scan on" in plan or "CTE Scan on" in plan]

    assert parts
    assert not [plan for plan in parts if "JIT:" in plan]
