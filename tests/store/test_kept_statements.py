"""Statements whose plans PostgreSQL keeps: functions of the database. What they do: test_conformance.py."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from django.db import connection, transaction

from tests.store.moves import NOW
from timeline.dialects import POSTGRESQL
from timeline.lifecycle import Reason, ReasonCode, State, Trigger
from timeline.store.changes import composed
from timeline.store.kept_statements import COMPLETE, COMPLETES, FIRST_DUE, KEPT, MOVES, READY_KINDS, moves_call
from timeline.store.poll_queries import probe_waiting
from timeline.store.task_key_stats import ready_kinds
from timeline.store.transition import Write, advance, apply, as_statement
from timeline.store.triggers import install_triggers
from timeline.timing import EARLIEST

pytestmark = [pytest.mark.django_db, pytest.mark.only_postgresql]

KEY = "account.call"
ANY_ID = UUID(int=0)
GROUP = {
    "task_key": KEY,
    "priority": 0,
    "most": 10,
    "since": EARLIEST,
    "since_id": ANY_ID,
    "retried": True,
    "worker": "w",
}
DONE = Reason(ReasonCode.DONE)
HOSTILE = "'); DROP TABLE timeline_logentry; -- %s %(id)s {} \\ \N{SNOWMAN}"


def begin(columns="id, state"):
    return advance("group", Trigger.START, columns=columns, now=NOW, using="default", **GROUP)


def long_values_read():
    """How many pieces of long values of tasks this transaction has read."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_stat_get_xact_tuples_fetched(indexrelid) FROM pg_index JOIN pg_class ON reltoastrelid = indrelid "
            "WHERE pg_class.oid = 'timeline_scheduledtask'::regclass"
        )
        return cursor.fetchone()[0]


@pytest.fixture
def called():
    """The functions that were called."""
    names = []

    def note(execute, sql, parameters, many, context):
        names.extend(kept.name for kept in KEPT if f" {kept.function}(" in sql)
        return execute(sql, parameters, many, context)

    with connection.execute_wrapper(note):
        yield names


class TestFunctions:
    @pytest.mark.parametrize("kept", KEPT, ids=lambda kept: kept.name)
    def test_are_as_migrate_has_put_them(self, kept):
        with connection.cursor() as cursor:
            cursor.execute("SELECT prosrc, proconfig FROM pg_proc WHERE proname = %s", [kept.function])
            [[source, settings]] = cursor.fetchall()

        assert source in kept.function_text("default")
        assert "plan_cache_mode=force_generic_plan" in settings

    @pytest.mark.parametrize("kept", KEPT, ids=lambda kept: kept.name)
    def test_have_no_place_that_is_not_filled(self, kept):
        text = kept.function_text("default")

        assert "%" not in text
        assert "-- if" not in text
        assert "{" not in text.replace("'{}'", "")

    @pytest.mark.parametrize("kept", KEPT, ids=lambda kept: kept.name)
    def test_read_each_of_their_arguments(self, kept):
        for name in kept.arguments:
            assert f"its_{name}" in kept.statement(POSTGRESQL), name

    def test_go_on_when_a_column_is_added(self, make_task):
        """An older process calls them on a table of a newer version; its plan was made before."""
        make_task(task_key=KEY, state=State.AVAILABLE, occurrence="a")
        assert len(begin()) == 1
        make_task(task_key=KEY, state=State.AVAILABLE, occurrence="b")
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute("ALTER TABLE timeline_scheduledtask ADD COLUMN later text DEFAULT 'yes'")

        assert len(begin()) == 1

    @pytest.mark.parametrize("returned", ["SETOF timeline_scheduledtask", "TABLE (id uuid)"])
    def test_take_the_place_of_one_that_returned_other_columns(self, make_task, returned):
        make_task(task_key=KEY, state=State.AVAILABLE)
        kept = MOVES["group", Trigger.START, False]
        arguments = ", ".join(f"its_{name} {kind}" for name, kind in kept.arguments.items())
        with connection.cursor() as cursor:
            cursor.execute(kept.drop)
            cursor.execute(
                f"CREATE FUNCTION {kept.function}({arguments}) RETURNS {returned} LANGUAGE plpgsql AS 'BEGIN RETURN; END'"
            )
        assert begin("id") == []

        install_triggers("default")

        assert len(begin()) == 1

    def test_leave_a_long_payload_unread_that_nobody_asks_for(self, make_task):
        """PostgreSQL reads each long value of a row that it returns whole: a gigabyte for a thousand tasks of a megabyte."""
        long = {"long": [str(uuid4()) for _number in range(1_000)]}
        for name in "abc":
            make_task(task_key=KEY, state=State.SCHEDULED, occurrence=name, scheduled_at=NOW, payload=long)
        asked = {"now": NOW, "using": "default"}
        shares = {"task_keys": [KEY], "priorities": [0], "sizes": [9], "since": [EARLIEST], "since_ids": [ANY_ID]}

        before = long_values_read()
        staged = advance("due", Trigger.DUE, most=9, since=EARLIEST, since_id=ANY_ID, **asked)
        claimed = advance("shares", Trigger.CLAIM, claim_token=uuid4(), **shares, **asked)
        active = make_task(task_key=KEY, state=State.ACTIVE, attempt=1, occurrence="d", payload=long)
        apply([Write(task=active, triggers=(Trigger.COMPLETE,), reason=DONE)], wait=False, **asked)
        whose = {"label": active.entity_label, "entity": active.entity_id, "spared": []}
        cancelled = advance("entity", Trigger.CANCEL, columns="id", reason=DONE, **whose, **asked)

        assert (len(staged), len(claimed), len(cancelled)) == (3, 3, 3)
        assert long_values_read() == before

    def test_leave_the_settings_of_the_transaction(self, make_task):
        make_task(task_key=KEY, state=State.AVAILABLE)
        with transaction.atomic(), connection.cursor() as cursor:
            begin()
            cursor.execute("SELECT current_setting('enable_seqscan'), current_setting('enable_sort')")

            assert cursor.fetchall() == [("on", "on")]


class TestMovesCall:
    def test_is_empty_for_what_is_not_kept(self):
        assert moves_call("kin", Trigger.CANCEL, "id", frozenset(), wait=False) == ""
        assert moves_call("due", Trigger.DUE, "id", frozenset(), wait=True) == ""

    @pytest.mark.parametrize("selection", sorted({selection for selection, _trigger, _wait in MOVES}))
    def test_keeps_one_that_the_package_knows(self, selection):
        assert POSTGRESQL.sql(f"held_{selection}")


class TestWhoCallsThem:
    def test_starts_a_group(self, make_task, called):
        task = make_task(task_key=KEY, state=State.AVAILABLE)

        assert begin() == [{"id": task.pk, "state": "active"}]
        assert called == ["start_from"]

    def test_composes_the_statement_if_anything_is_on_hold(self, make_task, called):
        task = make_task(task_key=KEY, state=State.AVAILABLE)

        rows = advance(
            "group", Trigger.START, parts=frozenset({"on_hold"}), columns="id", now=NOW, using="default", **GROUP
        )

        assert (rows, called) == ([{"id": task.pk}], [])

    @pytest.mark.parametrize("given", [{"detail": {"a": 1}}, {"scheduled_at": NOW}], ids=str)
    def test_composes_the_statement_for_a_value_that_the_function_does_not_take(self, make_task, called, given):
        task = make_task(task_key=KEY)

        advance("due", Trigger.DUE, most=1, since=EARLIEST, since_id=ANY_ID, now=NOW, using="default", **given)

        task.refresh_from_db()
        assert called == []
        written = {"detail": task.log.get().detail, "scheduled_at": task.scheduled_at}
        assert written | given == written

    def test_passes_any_text_on_as_it_is(self, make_task, called):
        task = make_task(entity_label="testapp.order", entity_id=HOSTILE)
        reason = Reason.operator(HOSTILE, "ada")

        [row] = advance(
            "entity",
            Trigger.CANCEL,
            columns="id, reason",
            reason=reason,
            label="testapp.order",
            entity=HOSTILE,
            spared=[],
            now=NOW,
            using="default",
        )

        assert row == {"id": task.pk, "reason": HOSTILE}
        assert task.log.get().reason == HOSTILE
        assert called == ["cancel_of_entity"]

    def test_looks_for_what_is_due_and_ready(self, make_task, called):
        make_task(task_key=KEY, state=State.AVAILABLE)

        assert probe_waiting(now=NOW, using="default").some_available
        assert list(ready_kinds([KEY], using="default")) == [KEY]
        assert called == [FIRST_DUE.name, READY_KINDS.name]

    def test_completes_many(self, make_task, called):
        tasks = [make_task(state=State.ACTIVE, attempt=1, occurrence=name) for name in "ab"]
        done = [Write(task=task, triggers=(Trigger.COMPLETE,), reason=DONE, result='{"a": 1}') for task in tasks]

        assert apply(done, now=NOW, using="default", wait=False) == tasks
        assert [(task.state, task.result) for task in tasks] == [("completed", {"a": 1})] * 2
        assert called == [COMPLETE.name]

    @pytest.mark.parametrize("given", [{"wait": True}, {"failures": 1}, {"evidence": {"a": 1}}], ids=str)
    def test_composes_the_statement_of_anything_else(self, make_task, given):
        task = make_task(state=State.ACTIVE, attempt=1)
        wait = given.pop("wait", False)
        write = Write(task=task, triggers=(Trigger.COMPLETE,), reason=DONE, **given)

        made, _parameters = as_statement([write], now=NOW, using="default", wait=wait)

        assert COMPLETE.function not in made.sql

    def test_reads_the_same_columns_of_a_completed_task_as_without_a_function(self, make_task):
        write = Write(task=make_task(state=State.ACTIVE, attempt=1), triggers=(Trigger.COMPLETE,), reason=DONE)

        made, _parameters = as_statement([write], now=NOW, using="default", wait=False)

        assert made.columns == composed(POSTGRESQL, "many", COMPLETES).columns
