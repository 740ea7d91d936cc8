"""Rows that name one of many entities: how the database looks them up, and what names none."""

from __future__ import annotations

import re

import pytest
from django.db.models import CharField, Value
from django.db.models.functions import Cast

from tests.databases import VENDOR
from tests.testapp.models import Plan, Seat
from timeline.models import ScheduledTask
from timeline.models.kin import naming_one_of

# Of tables with hardly a row PostgreSQL reads all, whatever it is asked: see tests/postgresql/test_plans_of_owned.py.
BY_NUMBER, BY_UUID = {
    "sqlite": (
        r"SEARCH U0 USING INTEGER PRIMARY KEY \(rowid=\?\)",
        r"SEARCH U0 USING (COVERING )?INDEX sqlite_autoindex_testapp_seat_1 \(id=\?\)",
    ),
    "postgresql": (r"testapp_plan u0", r"testapp_seat u0"),
}[VENDOR]


@pytest.fixture
def plans(user):
    """Three of them."""
    return [Plan.objects.create(user=user) for _ in range(3)]


@pytest.fixture
def row(make_task):
    """Make a row that names something."""
    return lambda label, text: make_task(task_key="plans.renew", entity_label=label, entity_id=text)


def found(entities):
    return list(ScheduledTask.objects.filter(naming_one_of(entities)))


class TestNamingOneOf:
    def test_finds_what_names_one_of_them(self, plans, row):
        mine, _other = row("testapp.plan", str(plans[0].pk)), row("testapp.plan", str(plans[2].pk))

        assert found(Plan.objects.filter(pk__in=[plans[0].pk, plans[1].pk])) == [mine]

    @pytest.mark.parametrize(
        "spelling",
        ["{}x", "0{}", "+{}", " {}", "{} ", "{}.0", "-{}", "{}e0", "x{}", "٣", "-0", "9" * 19, "9" * 40, "-", ""],
    )
    def test_finds_nothing_by_a_number_in_another_spelling(self, plans, row, spelling):
        """Each entity has one: a list of their keys would not find these either."""
        row("testapp.plan" if spelling else "", spelling.format(plans[0].pk))

        assert found(Plan.objects.all()) == []

    @pytest.mark.parametrize("text", ["-" * 36, "a" * 36, "0" * 36, "1-2", "x" * 36, "{}-{}".format("0" * 9, "0" * 26)])
    def test_finds_nothing_by_what_is_no_uuid(self, plans, row, text):
        """And does not fail either."""
        Seat.objects.create(plan=plans[0])
        row("testapp.seat", text)

        assert found(Seat.objects.all()) == []

    @pytest.mark.parametrize(("model", "looked_up"), [(Plan, BY_NUMBER), (Seat, BY_UUID)])
    def test_looks_each_up_by_its_key(self, db, model, looked_up):
        plan = ScheduledTask.objects.filter(naming_one_of(model.objects.all())).explain()

        assert re.search(looked_up, plan), plan
        assert "SCAN U0" not in plan

    def test_would_read_them_all_by_something_else(self, db):
        """So such a plan shows as what it is: the test above can fail."""
        texts = Plan.objects.annotate(text=Cast("pk", CharField())).filter(text=Value("17"))

        assert re.search(r"SCAN testapp_plan|Seq Scan on testapp_plan|testapp_plan_pkey", texts.explain())
