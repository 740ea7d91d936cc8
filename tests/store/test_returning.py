"""What statements of our own return, as Django would read it."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.db.models.signals import post_init

from tests.testapp.models import Order
from timeline.models import EntityRef, ScheduledTask, TimelineRun
from timeline.models.entities import load_entities, ref_of
from timeline.store.insert import fields_of
from timeline.store.returned_rows import (
    COLUMNS,
    FIELDS,
    MANY,
    as_tasks,
    cursor_for_rows,
    read_entities,
    read_models,
    row_of_json,
    rows_of,
    values_of,
)

SQL = "SELECT {} FROM timeline_scheduledtask ORDER BY occurrence"


@pytest.fixture
def task(make_task, now):
    """A row with something of each kind in it."""
    return make_task(
        occurrence="a",
        payload={"n": [1, "é"]},
        result=None,
        claim_token=uuid4(),
        anchor_value=now + timedelta(microseconds=123456),
        anchor_date=now.date(),
        priority=-3,
    )


def read(columns, *names):
    with cursor_for_rows(connection) as cursor:
        cursor.execute(SQL.format(columns))
        return rows_of(cursor, connection, names)


@pytest.mark.only_postgresql
class TestRowOfJson:
    @pytest.mark.parametrize("zone", ["UTC", "America/St_Johns"])
    def test_is_as_django_reads_it(self, task, now, zone):
        task.run = TimelineRun.objects.create(timeline="trial", started_at=now, params={"n": {"é": None}})
        task.save()

        for row in (task, task.run):
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('TimeZone', %s, true)", [zone])
                table = row._meta.db_table
                cursor.execute(f"SELECT row_to_json(row)::text FROM {table} AS row WHERE id = %s", [row.pk])  # noqa: S608
                read = row_of_json(cursor.fetchone()[0], type(row))
                cursor.execute("SET LOCAL TimeZone TO 'UTC'")
            stored = type(row).objects.get(pk=row.pk)
            assert read == {name: getattr(stored, name) for name in fields_of(type(row))}
            assert {type(value) for value in read.values()} == {
                type(getattr(stored, name)) for name in fields_of(type(row))
            }


class TestReadModels:
    def test_are_as_django_reads_them(self, task, make_task, django_assert_num_queries):
        make_task(occurrence="b")
        asked = ScheduledTask.objects.filter(occurrence__in=["a", "b"]).order_by("occurrence")

        with django_assert_num_queries(1):
            read = read_models(asked[:1])

        assert read == [task]
        assert all(getattr(read[0], name) == getattr(asked[0], name) for name in FIELDS)
        assert (read[0]._state.db, read[0]._state.adding) == ("default", False)

    @pytest.mark.parametrize("is_told", [False, True])
    def test_have_what_is_selected_besides(self, task, is_told):
        """Also where somebody is told of each instance of any model, so that Django makes them."""
        told = []
        if is_told:
            post_init.connect(lambda instance, **_signal: told.append(instance), weak=False, dispatch_uid="told")
        try:
            [read] = read_models(ScheduledTask.objects.extra(select={"is_more": "1 = 1"}))
        finally:
            post_init.disconnect(dispatch_uid="told")

        assert bool(read.is_more) is True
        assert all(getattr(read, name) == getattr(task, name) for name in FIELDS)
        assert told == ([read] if is_told else [])

    def test_are_none_where_nothing_is_found(self, db):
        assert read_models(ScheduledTask.objects.filter(occurrence="x")) == []
        assert read_models(ScheduledTask.objects.filter(occurrence__in=[])) == []


class TestReadEntities:
    @pytest.mark.parametrize("is_told", [False, True])
    def test_are_as_they_are_loaded(self, db, now, is_told):
        """Made by hand, or by Django where somebody is told of each; one that is gone is not among them."""
        refs = [ref_of(Order.objects.create(ships_at=at)) for at in (now, None) * MANY]
        asked, told = [*refs, EntityRef(refs[0].label, "4711"), EntityRef(refs[0].label, "no key")], []
        if is_told:
            post_init.connect(
                lambda instance, **_signal: told.append(instance), sender=Order, weak=False, dispatch_uid="told"
            )
        try:
            found = read_entities(asked, using="default")
        finally:
            post_init.disconnect(sender=Order, dispatch_uid="told")

        loaded = load_entities(asked, using="default")
        assert set(found) == set(loaded) == set(refs)
        assert len(told) == (2 * MANY if is_told else 0)
        for ref, entity in found.items():
            for name in fields_of(Order):
                assert repr(getattr(entity, name)) == repr(getattr(loaded[ref], name))  # With the zones of times.
            assert (entity._state.db, entity._state.adding) == ("default", False)

    def test_are_none_where_no_key_can_be_one(self, db):
        assert read_entities([EntityRef("testapp.order", "no key")], using="default") == {}


class TestRowsOf:
    @pytest.mark.parametrize("names", [(), tuple(FIELDS)], ids=["as the cursor says", "named"])
    def test_have_values_as_django_reads_them(self, task, names):
        [row] = read(COLUMNS, *names).values()

        assert row == ScheduledTask.objects.values(*FIELDS).get()

    def test_are_in_the_order_of_the_statement(self, task, make_task):
        second, third = make_task(occurrence="b"), make_task(occurrence="c")

        assert list(read("id, state")) == [task.pk, second.pk, third.pk]

    def test_have_the_columns_asked_for_only(self, task):
        assert read("id, priority", "id", "priority") == {task.pk: {"id": task.pk, "priority": -3}}


class TestAsTasks:
    def test_is_the_row_as_it_is_stored(self, task, django_assert_num_queries):
        rows = read(COLUMNS).values()

        with django_assert_num_queries(0):
            [made] = as_tasks(rows, "default")
            values = [getattr(made, name) for name in FIELDS]

        stored = ScheduledTask.objects.get()
        assert values == [getattr(stored, name) for name in FIELDS]
        assert (made._state.db, made._state.adding) == ("default", False)

    def test_tells_who_wants_to_know_of_each(self, task):
        told = []

        def tell(instance, **_others):
            told.append(instance)

        rows = read(COLUMNS).values()
        post_init.connect(tell, sender=ScheduledTask)
        try:
            made = as_tasks(rows, "default")
        finally:
            post_init.disconnect(tell, sender=ScheduledTask)

        assert told == made


class TestValuesOf:
    def test_are_as_django_reads_them_in_the_order_of_the_columns(self, task):
        names = ("priority", "id", "payload", "anchor_date", "anchor_value", "result")

        with cursor_for_rows(connection) as cursor:
            cursor.execute(SQL.format(", ".join(names)))
            [row] = values_of(cursor, connection, names)

        assert tuple(row) == ScheduledTask.objects.values_list(*names).get()


@pytest.mark.django_db
class TestEmptyJSON:
    def test_is_each_rows_own(self, make_task):
        """Who changes what one row says changes no other."""
        for occurrence in ("a", "b"):
            make_task(occurrence=occurrence, payload={}, result={})

        with cursor_for_rows(connection) as cursor:
            cursor.execute(SQL.format(COLUMNS))
            first, second = rows_of(cursor, connection, tuple(FIELDS)).values()

        assert first["payload"] == first["result"] == second["payload"] == {}
        assert len({id(row[name]) for row in (first, second) for name in ("payload", "result")}) == 4
