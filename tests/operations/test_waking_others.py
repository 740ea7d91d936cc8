"""Notes of whom to wake: what they cost who emits, and by which index polls carry them out."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest
from django.db import DataError, connection
from django.test.utils import CaptureQueriesContext

from tests.databases import VENDOR
from tests.testapp.models import Order
from timeline.dispatch.poll import stage
from timeline.features.waits import wake
from timeline.features.waits.wake import note
from timeline.models import EntityRef, Wake
from timeline.shortcuts import emit_many
from timeline.store.kept_statements import FIRST_DUE

pytestmark = pytest.mark.django_db


@pytest.fixture
def elsewhere(make_task, now):
    """A row at rest, of one order, that waits for an event of another."""

    def make(order, awaits="order.paid", **given):
        columns = {
            "state": "retryable",
            "attempt": 1,
            "reason_code": "waiting",
            "scheduled_at": now + timedelta(days=9),
        }
        columns |= {"entity_label": "testapp.order", "entity_id": "0", "awaits_other": True} | given
        return make_task(awaits=awaits, awaits_label="testapp.order", awaits_id=str(order.pk), **columns)

    return make


def orders(count, now):
    return Order.objects.bulk_create([Order(ships_at=now) for _ in range(count)])


def statements(act):
    with CaptureQueriesContext(connection) as made:
        act()
    return [query["sql"] for query in made]


class TestWhoEmits:
    def test_asks_nothing_more_where_nobody_waits(self, order, elsewhere, now, emit_at):
        elsewhere(Order.objects.create())

        asked = statements(lambda: emit_at("order.paid", order, now))

        assert not any("timeline_wake" in sql for sql in asked)

    def test_of_many_notes_all_in_one_statement(self, elsewhere, now):
        several = orders(30, now)
        for order in several:
            elsewhere(order)

        asked = statements(lambda: emit_many("order.paid", several))

        assert len([sql for sql in asked if "timeline_wake" in sql]) == 1
        assert Wake.objects.count() == 30

    def test_notes_nothing_where_others_wait_for_another_event(self, order, elsewhere, now, emit_at):
        elsewhere(order, "order.returned")

        emit_at("order.paid", order, now)

        assert not Wake.objects.exists()

    def test_of_none_asks_nothing(self, django_assert_num_queries, db):
        with django_assert_num_queries(0):
            note("order.paid", "", [], using="default")


class TestAPoll:
    def test_asks_as_much_as_before_where_nothing_is_noted(self, now, db):
        """On SQLite one statement more."""
        asked = statements(lambda: stage(now=now, using="default"))

        if VENDOR == "postgresql":
            assert [sql for sql in asked if FIRST_DUE.function in sql] == asked
        else:
            assert len([sql for sql in asked if "timeline_wake" in sql]) == 1

    def test_wakes_by_whoever_has_the_same_id_but_not_the_same_label(self, order, elsewhere, now):
        """A parcel with the number of an order is not that order."""
        row = elsewhere(order)
        Wake.objects.create(name="order.paid", entity_label="testapp.parcel", entity_id=str(order.pk))

        assert stage(now=now, using="default") == 0
        row.refresh_from_db()
        assert row.state == "retryable"
        assert not Wake.objects.exists()

    def test_goes_on_though_a_note_cannot_be_carried_out(self, order, elsewhere, make_task, now, monkeypatch, caplog):
        """What else is due is staged, and the note stays for later polls."""
        elsewhere(order)
        due = make_task(scheduled_at=now)
        Wake.objects.create(name="order.paid", entity_label="testapp.order", entity_id=str(order.pk))

        def refuse(*_given, **_more):
            raise DataError("no")

        monkeypatch.setattr(wake, "apply", refuse)
        assert stage(now=now, using="default") == 1

        due.refresh_from_db()
        assert (due.state, Wake.objects.count()) == ("available", 1)
        assert "cannot be carried out now" in caplog.text

    def test_leaves_due_times_that_have_passed(self, order, elsewhere, now):
        """It is staged, and not waked."""
        row = elsewhere(order, scheduled_at=now - timedelta(days=1))
        Wake.objects.create(name="order.paid", entity_label="testapp.order", entity_id=str(order.pk))

        stage(now=now, using="default")

        row.refresh_from_db()
        assert (row.state, row.scheduled_at) == ("available", now - timedelta(days=1))
        assert not row.log.filter(reason_code="event").exists()


class TestHowItIsAsked:
    @pytest.mark.parametrize("verb", ["note_wakes", "noted"])
    def test_goes_by_the_index_of_those_who_wait(self, order, elsewhere, make_tasks, now, verb):
        elsewhere(order)
        others = {"awaits": "order.paid", "awaits_label": "testapp.order", "awaits_other": True}
        # Without these, each index is as good as any.
        make_tasks([others | {"awaits_id": f"x{number}"} for number in range(300)])
        made = statements(
            lambda: (
                note("order.paid", "", [EntityRef("testapp.order", str(order.pk))], using="default"),
                stage(now=now, using="default"),
            )
        )
        begins = {"note_wakes": "INSERT INTO timeline_wake", "noted": "SELECT task.id"}[verb]
        [sql] = [sql for sql in made if re.sub(r"\s+", " ", sql).strip().startswith(begins)]

        with connection.cursor() as cursor:
            if VENDOR == "postgresql":
                cursor.execute("ANALYZE timeline_scheduledtask")
                cursor.execute("SET LOCAL enable_seqscan = off")
                cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}")
            else:
                cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
            assert "timeline_task_awaited" in json.dumps(cursor.fetchall())
