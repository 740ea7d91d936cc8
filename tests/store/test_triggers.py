"""The database's own guard, asked in raw SQL: nothing of ours stands between."""

import itertools
from uuid import UUID

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, models, transaction

from tests.triggers import drop_trigger
from timeline.checks import check_triggers
from timeline.hooks import hooks
from timeline.lifecycle import ALLOWED_PAIRS, FINAL, LEASED, OPEN, RunEnd, State
from timeline.models import Event, LogEntry, ScheduledTask, TimelineRun
from timeline.store.triggers import KEEPERS, KEPT, TRIGGERS, install_triggers, missing_triggers, triggers_of

TASK = ScheduledTask._meta.db_table
RUN = TimelineRun._meta.db_table
LOG = LogEntry._meta.db_table


def update(table, row, **columns):
    """Change a row behind everybody's back; a refused change leaves the test's transaction usable."""
    changes = ", ".join(f"{name} = %s" for name in columns)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET {changes} WHERE id = %s", [*columns.values(), key_of(row)])  # noqa: S608
    row.refresh_from_db()
    return row


def key_of(row):
    return row.pk.hex if isinstance(row.pk, UUID) and connection.vendor == "sqlite" else row.pk


def columns_of(state, task):
    """What the CHECKs want of a row in this state, so that only the trigger decides."""
    finished = task.finished_at or "2026-03-01 09:00:00"
    return {
        "state": state.value,
        "finished_at": finished if state in FINAL else None,
        "lease_expires_at": "2999-01-01 00:00:00" if state in LEASED else None,
        "reason_code": task.reason_code or "operator",
    }


class TestGuardTransition:
    @pytest.mark.parametrize(
        ("source", "end"), [pair for pair in itertools.product(State, State) if pair in ALLOWED_PAIRS]
    )
    def test_passes_each_move_of_the_table(self, make_task, source, end):
        task = make_task(state=source)

        update(TASK, task, **columns_of(end, task))

        assert task.state == end

    @pytest.mark.parametrize("state", State)
    def test_passes_an_unchanged_state(self, make_task, state):
        task = make_task(state=state)

        update(TASK, task, state=state.value, worker="somebody")

        assert (task.state, task.worker) == (state, "somebody")

    @pytest.mark.parametrize(
        ("source", "end"),
        [pair for pair in itertools.product(State, State) if pair not in ALLOWED_PAIRS and pair[0] != pair[1]],
    )
    def test_refuses_every_other_move(self, make_task, source, end):
        task = make_task(state=source)

        with pytest.raises(IntegrityError, match="timeline: "):
            update(TASK, task, **columns_of(end, task))

        task.refresh_from_db()
        assert task.state == source

    @pytest.mark.parametrize(
        ("source", "end"), [(State.AVAILABLE, State.SCHEDULED), (State.COMPLETED, State.AVAILABLE)]
    )
    def test_is_what_refuses(self, make_task, source, end):
        """Without the triggers no CHECK stands in the way: the tests above ask the trigger and nothing else."""
        task = make_task(state=source)
        drop_trigger("guard_transition")
        drop_trigger("guard_final")

        update(TASK, task, **columns_of(end, task))

        assert task.state == end


class TestAnEndedRun:
    @pytest.fixture
    def ended(self, db, now):
        """End a run so: ``ended("exit")``."""
        row = {"timeline": "trial", "started_at": now, "ended_at": now, "end_reason": "over"}
        return lambda code: TimelineRun.objects.create(**row, end_code=code)

    @pytest.mark.parametrize("code", sorted(RunEnd))
    def test_does_not_end_anew(self, ended, code):
        with pytest.raises(IntegrityError, match="timeline: "):
            update(RUN, ended(code), ended_at="2030-01-01 00:00:00")
        with pytest.raises(IntegrityError, match="timeline: "):
            update(RUN, ended(code), end_code=next(other for other in sorted(RunEnd) if other != code))

    @pytest.mark.parametrize("code", sorted(set(RunEnd) - {RunEnd.FINISHED}))
    @pytest.mark.parametrize("columns", [{"ended_at": None}, {"ended_at": None, "end_code": "", "end_reason": ""}])
    def test_does_not_begin_again(self, ended, code, columns):
        with pytest.raises(IntegrityError):
            update(RUN, ended(code), **columns)

    def test_may_begin_again_if_it_was_finished(self, ended):
        """As a redrive has it."""
        assert update(RUN, ended(RunEnd.FINISHED), ended_at=None, end_code="", end_reason="").is_open


@pytest.mark.only_postgresql
class TestWhatIsNotInForce:
    """A guard that is there by its name only is missing, and comes back with ``migrate``."""

    @pytest.mark.parametrize(
        ("statement", "missing"),
        [
            (f"ALTER TABLE {TASK} ENABLE REPLICA TRIGGER timeline_guard_transition", "guard_transition"),
            (
                "CREATE OR REPLACE FUNCTION timeline_refuse_move() RETURNS trigger LANGUAGE plpgsql"
                " AS $$ BEGIN RETURN NEW; END $$",
                "guard_move",
            ),
            (
                f"CREATE OR REPLACE TRIGGER timeline_guard_final BEFORE UPDATE ON {TASK} FOR EACH ROW WHEN (false)"
                " EXECUTE FUNCTION timeline_refuse_ended()",
                "guard_final",
            ),
            (
                "CREATE OR REPLACE FUNCTION timeline_is_awaited(its_label text, its_id text) RETURNS boolean"
                " LANGUAGE sql AS $$ SELECT false $$",
                "is_awaited",
            ),
        ],
        ids=["on a replica only", "a function without its body", "a condition that is never met", "a function called"],
    )
    def test_is_missing_until_it_is_installed_again(self, db, statement, missing):
        with connection.cursor() as cursor:
            cursor.execute(statement)

        found = missing_triggers("default")
        install_triggers("default")

        assert found == [missing]
        assert missing_triggers("default") == []

    def test_is_nothing_that_another_search_path_finds(self, db):
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL search_path = pg_catalog, public")

        assert missing_triggers("default") == []


class TestGuardFinal:
    CHANGES = {
        "state": State.DISCARDED.value,
        "attempt": 7,
        "seq": 7,
        "scheduled_at": "2030-01-01 00:00:00",
        "finished_at": "2030-01-01 00:00:00",
        "reason_code": "guard",
    }

    @pytest.mark.parametrize("state", sorted(FINAL))
    @pytest.mark.parametrize("column", CHANGES)
    def test_keeps_how_a_task_ended(self, make_task, state, column):
        task = make_task(state=state)
        value = self.CHANGES[column] if task.state != self.CHANGES[column] else State.COMPLETED.value

        with pytest.raises(IntegrityError, match="timeline: "):
            update(TASK, task, **{column: value})

    @pytest.mark.parametrize("state", sorted(FINAL))
    def test_lets_texts_be_blanked(self, make_task, state):
        task = make_task(state=state, reason="told by Ada", actor="ada@example.com", error="boom")

        update(TASK, task, reason="", actor="", error="", payload="{}", result=None)

        assert (task.reason, task.actor, task.error) == ("", "", "")

    @pytest.mark.parametrize("state", sorted(OPEN))
    def test_leaves_open_tasks_alone(self, make_task, state):
        task = make_task(state=state)

        update(TASK, task, attempt=3, seq=3, scheduled_at="2030-01-01 00:00:00", reason_code="moved")

        assert (task.attempt, task.seq, task.scheduled_at.year, task.reason_code) == (3, 3, 2030, "moved")


@pytest.mark.only_postgresql
class TestWhatASessionSaysOfNames:
    """Functions read their text anew in each session, with the operators that this one finds first."""

    @pytest.fixture(params=["theirs, public, pg_catalog", "theirs, public"], ids=["before all", "as usual"])
    def theirs(self, request, db):
        """Operators of somebody's own, by which all moves are allowed and nothing has changed."""
        said = {
            "first": "varchar, text",
            "second": "text, varchar",
            "third": "text, text",
        }
        made = ["CREATE SCHEMA theirs"]
        for name, types in said.items():
            left, right = types.split(", ")
            arguments = f"LEFTARG = {left}, RIGHTARG = {right}, FUNCTION = theirs.{name}"
            body = "LANGUAGE sql AS $$ SELECT 'scheduled available'::text $$"
            made += [
                f"CREATE FUNCTION theirs.{name}({types}) RETURNS text {body}",
                f"CREATE OPERATOR theirs.|| ({arguments})",
            ]
        for place, kind in enumerate(("varchar", "integer", "timestamptz")):
            arguments = f"LEFTARG = {kind}, RIGHTARG = {kind}, FUNCTION = theirs.same{place}"
            body = "LANGUAGE sql AS $$ SELECT true $$"
            made += [f"CREATE FUNCTION theirs.same{place}({kind}, {kind}) RETURNS boolean {body}"]
            made += [f"CREATE OPERATOR theirs.= ({arguments})"]
        with connection.cursor() as cursor:
            cursor.execute("; ".join(made))
        return f"SET LOCAL search_path = {request.param}"

    def change(self, task, theirs, **columns):
        changes = ", ".join(f"{name} = %s" for name in columns)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(theirs)
            key = "id OPERATOR(pg_catalog.=) %s"
            cursor.execute(f"UPDATE {TASK} SET {changes} WHERE {key}", [*columns.values(), task.pk])  # noqa: S608

    def test_lets_no_other_move_pass(self, make_task, theirs):
        task = make_task(state=State.SCHEDULED)

        with pytest.raises(IntegrityError, match="timeline: this transition"):
            self.change(task, theirs, **columns_of(State.COMPLETED, task))

    @pytest.mark.parametrize("column", TestGuardFinal.CHANGES)
    def test_lets_nobody_change_how_a_task_ended(self, make_task, theirs, column):
        task = make_task(state=State.COMPLETED)

        with pytest.raises(IntegrityError, match="timeline: a task that has ended"):
            self.change(task, theirs, **{column: TestGuardFinal.CHANGES[column]})

    def test_passes_what_the_table_has_where_nothing_is_found_by_its_name(self, make_task):
        task = make_task(state=State.SCHEDULED)

        self.execute_where_nothing_is_found("UPDATE {} SET state = 'available' WHERE id = %s", task)

        task.refresh_from_db()
        assert task.state == State.AVAILABLE

    @pytest.fixture
    def event(self, db, now):
        return Event.objects.create(name="order.paid", occurred_at=now, recorded_at=now)

    def execute_where_nothing_is_found(self, sql, row):
        """Where no table is found by its name alone; the braces stand for the row's table, named with its schema."""
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT current_schema()")
            [schema] = cursor.fetchone()
            cursor.execute("SET LOCAL search_path = ''")
            cursor.execute(sql.format(f"{schema}.{row._meta.db_table}"), [row.pk])
            cursor.execute(f"SET LOCAL search_path = {schema}")

    def test_keeps_an_event_that_a_task_names(self, make_task, event):
        make_task(cause=event)

        with pytest.raises(IntegrityError, match="a row of timeline_scheduledtask still names this one"):
            self.execute_where_nothing_is_found("DELETE FROM {} WHERE id = %s", event)

    def test_keeps_an_event_that_is_named_by_a_table_in_another_schema(self, make_task, event):
        make_task(cause=event)

        with connection.cursor() as cursor:
            cursor.execute(f"CREATE SCHEMA theirs; ALTER TABLE {TASK} SET SCHEMA theirs")
            cursor.execute("SET LOCAL search_path = public, theirs")

        with (
            pytest.raises(IntegrityError, match="still names this one"),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute(f"DELETE FROM {Event._meta.db_table} WHERE id = %s", [event.pk])  # noqa: S608

    def test_lets_an_event_go_that_nobody_names(self, event):
        self.execute_where_nothing_is_found("DELETE FROM {} WHERE id = %s", event)

        assert not Event.objects.exists()


class TestGuardLog:
    @pytest.fixture
    def entry(self, make_task, now):
        return LogEntry.objects.create(
            task=make_task(),
            seq=1,
            at=now,
            from_state=State.SCHEDULED,
            to_state=State.AVAILABLE,
            attempt=0,
            reason_code="operator",
            reason="asked by Ada",
            actor="ada@example.com",
            detail={"error": {"message": "ada@example.com"}},
        )

    @pytest.mark.parametrize(
        ("column", "value"),
        [
            ("id", 999),
            ("seq", 2),
            ("at", "2030-01-01 00:00:00"),
            ("from_state", "available"),
            ("to_state", "cancelled"),
            ("attempt", 1),
            ("reason_code", "guard"),
            ("reason_code", ""),
            ("reason", "asked by Bob"),
            ("actor", "bob@example.com"),
        ],
    )
    def test_refuses_to_rewrite_history(self, entry, column, value):
        with pytest.raises(IntegrityError, match="the log does not change"):
            update(LOG, entry, **{column: value})

    def test_refuses_to_give_an_entry_to_another_task(self, entry, make_task):
        with pytest.raises(IntegrityError, match="the log does not change"):
            update(LOG, entry, task_id=key_of(make_task()))

    def test_lets_texts_be_blanked(self, entry):
        update(LOG, entry, reason="", actor="", detail="{}")

        assert (entry.reason, entry.actor, entry.detail) == ("", "", {})


class TestInstallTriggers:
    def test_puts_back_what_is_missing(self, db):
        drop_trigger("guard_final")

        put = install_triggers("default")

        assert put == list(triggers_of("default"))
        assert missing_triggers("default") == []

    def test_may_be_said_again(self, make_task):
        install_triggers("default")
        install_triggers("default")

        with pytest.raises(IntegrityError):
            update(TASK, make_task(state=State.COMPLETED), state=State.ACTIVE.value)

    def test_leaves_a_database_alone_that_has_no_tables_of_ours(self, foreign_database):
        """A host may migrate one that we do not run on."""
        assert install_triggers(foreign_database) == []


class TestMissingTriggers:
    def test_is_empty_when_all_stand(self, db):
        assert missing_triggers("default") == []

    @pytest.mark.parametrize("name", TRIGGERS)
    def test_names_the_one_that_was_dropped(self, db, name):
        drop_trigger(name)

        assert missing_triggers("default") == [name]
        assert [found.id for found in check_triggers(None, databases=["default"])] == ["timeline.E004"]

    @pytest.mark.only_postgresql  # SQLite has keys.
    @pytest.mark.parametrize("name", KEEPERS)
    def test_names_one_that_keeps_what_is_named(self, db, name):
        drop_trigger(name)

        assert missing_triggers("default") == [name]


@pytest.mark.django_db(transaction=True)
class TestAMigrationThatRemakesTheTable:
    @pytest.fixture
    def _remade(self):
        """Widen a column, which on SQLite makes the table anew; and back again at the end."""
        narrow = ScheduledTask._meta.get_field("queue")
        wide = models.CharField(max_length=51, default="default")
        wide.set_attributes_from_name("queue")
        with connection.schema_editor() as editor:
            editor.alter_field(ScheduledTask, narrow, wide)
        yield
        with connection.schema_editor() as editor:
            editor.alter_field(ScheduledTask, wide, narrow)
        install_triggers("default")

    @pytest.mark.usefixtures("_remade")
    def test_loses_the_triggers_where_it_makes_the_table_anew(self):
        lost = ["guard_transition", "guard_final"] if connection.vendor == "sqlite" else []

        assert missing_triggers("default") == lost

    @pytest.mark.usefixtures("_remade")
    def test_has_them_back_once_it_is_done(self, make_task):
        task = make_task(state=State.COMPLETED)

        call_command("migrate", verbosity=0)

        assert missing_triggers("default") == []
        with pytest.raises(IntegrityError, match="timeline: "):
            update(TASK, task, **columns_of(State.AVAILABLE, task))


@pytest.mark.only_postgresql
class TestFunctionsThatStatementsCall:
    @pytest.mark.parametrize("name", [name for name, _composed in hooks().functions])
    def test_are_named_when_they_are_missing(self, db, name):
        with connection.cursor() as cursor:
            cursor.execute(f"DROP FUNCTION timeline_{name}")

        assert missing_triggers("default") == [name]
        assert "migrate" in str(check_triggers(None, databases=["default"])[0].hint)

    @pytest.mark.parametrize("name", KEPT)
    def test_are_named_when_one_whose_plan_is_kept_is_missing(self, db, name):
        with connection.cursor() as cursor:
            cursor.execute(f"DROP FUNCTION timeline_{name}")

        assert missing_triggers("default") == [name]

    def test_are_no_reason_not_to_migrate(self, db):
        """A site comes from a version without them: migrate checks first, and puts them last."""
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION timeline_start_from, timeline_first_from")
            cursor.execute("DELETE FROM django_migrations WHERE app = 'timeline'")

        assert check_triggers(None, databases=["default"]) == []
