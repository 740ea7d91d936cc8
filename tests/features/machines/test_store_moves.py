"""The one way in which machines move, and the database's own refusal, asked in raw SQL."""

import itertools
from contextlib import ExitStack
from datetime import timedelta

import psycopg
import pytest
from django.db import IntegrityError, connection, transaction

from tests.machines import Booking, S, is_whole, placed
from tests.store.test_triggers import update
from tests.triggers import drop_trigger
from timeline.exceptions import MoveNotAllowed, WrongEntity, WrongIsolation
from timeline.features.machines.edges import see_edges
from timeline.features.machines.store import (
    NewState,
    can_read_ahead,
    last_moved,
    lock_entity_to_move,
    lock_to_move,
    move_runs,
    runs_to_move,
)
from timeline.models import Edge, EntityRef, RunEntry, ScheduledTask, TimelineRun, ref_of
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db

RUN = TimelineRun._meta.db_table
ENTRY = RunEntry._meta.db_table
EDGES = Booking.definition.machine.edges


@pytest.fixture(autouse=True)
def _machine():
    with only_timelines(Booking):
        see_edges(using="default")
        yield


def moved(run, state):
    return update(RUN, run, state=str(state), moves=run.moves + 1, state_at="2026-03-01 10:00:00+00:00")


class TestGuardMove:
    @pytest.mark.parametrize("state", S)
    def test_passes_the_moves_of_the_table_and_no_others(self, state, order):
        for target in S:
            run = placed(order, state, key=str(target))
            if (state, target) in EDGES or state == target:
                assert moved(run, target).state == target
            else:
                with pytest.raises(IntegrityError, match="timeline: this machine has no such move"):
                    moved(run, target)
                run.refresh_from_db()
                assert (run.state, run.moves) == (state, 0)

    @pytest.mark.parametrize(
        "columns",
        [
            {"state": "VALIDATING"},
            {"state": "VALIDATING", "moves": 2},
            {"state": "", "moves": 1},
            {"back": "QUEUED"},
            {"state_at": "2026-03-02 10:00:00+00:00"},
            {"moves": -1},
        ],
    )
    def test_refuses_a_move_that_is_not_counted(self, order, columns):
        run = placed(order, S.CREATED)

        with pytest.raises(IntegrityError):
            update(RUN, run, **columns)

    @pytest.mark.only_postgresql
    def test_goes_by_no_temporary_table_of_the_session(self, order):
        run = placed(order, S.CREATED)
        with connection.cursor() as cursor:
            cursor.execute("CREATE TEMPORARY TABLE timeline_edge (timeline text, from_state text, to_state text)")
            cursor.execute("INSERT INTO timeline_edge VALUES (%s, 'CREATED', 'BOOKED')", [run.timeline])

        with pytest.raises(IntegrityError, match="timeline: this machine has no such move"):
            moved(run, "BOOKED")

        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE pg_temp.timeline_edge")

    @pytest.mark.only_postgresql
    @pytest.mark.parametrize("path", ["theirs, public, pg_catalog", "theirs, public"])
    @pytest.mark.parametrize("moved", [{"state": "BOOKED", "moves": 1}, {"state": "VALIDATING", "moves": 2}])
    def test_goes_by_no_operator_that_a_session_finds_first(self, order, path, moved):
        run, made = placed(order, S.CREATED), ["CREATE SCHEMA theirs"]
        for kind in ("varchar", "integer"):
            arguments = f"LEFTARG = {kind}, RIGHTARG = {kind}, FUNCTION = theirs.never"
            made += [f"CREATE FUNCTION theirs.never({kind}, {kind}) RETURNS boolean LANGUAGE sql AS $$ SELECT false $$"]
            made += [f"CREATE OPERATOR theirs.<> ({arguments})"]
        changes = ", ".join(f"{name} = %s" for name in moved)

        with connection.cursor() as cursor:
            cursor.execute("; ".join([*made, f"SET LOCAL search_path = {path}"]))
            with pytest.raises(IntegrityError, match="no such move"), transaction.atomic():
                cursor.execute(
                    f"UPDATE {RUN} SET {changes} WHERE id OPERATOR(pg_catalog.=) %s",  # noqa: S608
                    [*moved.values(), run.pk],
                )

    def test_refuses_a_stale_save(self, order):
        run = placed(order, S.CREATED)
        stale = TimelineRun.objects.get(pk=run.pk)
        moved(run, S.VALIDATING)
        moved(run, S.QUEUED)

        with pytest.raises(IntegrityError), transaction.atomic():
            stale.save()

        assert TimelineRun.objects.get().state == "QUEUED"

    def test_refuses_to_move_what_has_ended(self, order):
        run = placed(order, S.CREATED, ended_at="2026-03-01T10:00Z", end_reason="left")

        with pytest.raises(IntegrityError, match="no such move"):
            moved(run, S.VALIDATING)

    def test_refuses_to_give_a_run_a_state_that_is_no_machines(self, order, now):
        run = TimelineRun.objects.create(
            timeline="booking", entity_label="testapp.order", entity_id=str(order.pk), started_at=now
        )

        with pytest.raises(IntegrityError):
            moved(run, S.VALIDATING)

    def test_lets_all_else_of_a_run_change(self, order):
        run = placed(order, S.CREATED)

        assert update(RUN, run, is_cleared=True).is_cleared

    def test_is_what_refuses(self, order):
        """Without it nothing stands in the way: the tests above ask the trigger and nothing else."""
        run = placed(order, S.BOOKED)
        drop_trigger("guard_move")

        assert moved(run, S.QUEUED).state == "QUEUED"


class TestChecks:
    @pytest.mark.parametrize(
        "columns",
        [{"state": "CREATED"}, {"state_at": "2026-03-01T10:00Z"}, {"moves": 1}, {"back": "A"}],
    )
    def test_refuse_half_a_state(self, order, now, columns):
        with pytest.raises(IntegrityError, match="timeline_run_state_whole"):
            TimelineRun.objects.create(
                timeline="booking", entity_label="testapp.order", entity_id=str(order.pk), started_at=now, **columns
            )


class TestGuardEntry:
    @pytest.mark.parametrize(
        "columns",
        [
            {"seq": 7},
            {"to_state": "BOOKED"},
            {"from_state": "QUEUED"},
            {"event": "x"},
            {"back": "QUEUED"},
            {"at": "2027-01-01 00:00:00+00:00"},
            {"actor": "eve"},
        ],
    )
    def test_refuses_a_change(self, order, columns):
        placed(order, S.CREATED)

        with pytest.raises(IntegrityError, match="timeline: the entries of a run do not change"):
            update(ENTRY, RunEntry.objects.get(), **columns)

    def test_lets_who_moved_it_be_blanked(self, order, now):
        run = placed(order, S.CREATED)
        move_runs([NewState(run, S.VALIDATING, "CREATED", None)], event="a", actor="ada", now=now, using="default")

        assert update(ENTRY, RunEntry.objects.get(seq=1), actor="").actor == ""

    def test_has_no_two_of_one_number(self, order, now):
        run = placed(order, S.CREATED)

        with pytest.raises(IntegrityError), transaction.atomic():
            RunEntry.objects.create(run=run, seq=0, at=now, to_state="CREATED")


class TestMoveRuns:
    def test_writes_all_of_a_move_and_its_entry(self, order, now, later):
        run = placed(order, S.CREATED, started_at=now)

        [done] = move_runs(
            [NewState(run, S.VALIDATING, "CREATED", None)],
            event="booking.submitted",
            actor="ada",
            now=later,
            using="default",
        )

        assert done is run
        stored = TimelineRun.objects.get()
        told = ("state", "state_at", "back", "moves")
        assert [getattr(stored, name) for name in told] == [getattr(run, name) for name in told]
        assert (stored.state, stored.state_at, stored.back, stored.moves) == ("VALIDATING", later, "CREATED", 1)
        assert is_whole(run)

    @pytest.mark.parametrize("columns", [{"state": S.QUEUED}, {"moves": 3}, {"ended_at": "2026-03-01T10:00Z"}])
    def test_refuses_what_is_not_as_it_was_read(self, order, now, columns):
        run = placed(order, S.CREATED, **({"end_reason": "left", **columns} if "ended_at" in columns else {}))
        for name, value in columns.items():
            setattr(run, name, value)

        with pytest.raises(MoveNotAllowed), transaction.atomic():
            move_runs([NewState(run, S.VALIDATING, "", None)], event="x", actor="", now=now, using="default")

        assert RunEntry.objects.count() == 1

    def test_moves_none(self, now, django_assert_num_queries):
        with django_assert_num_queries(0):
            assert move_runs([], event="x", actor="", now=now, using="default") == []


class TestQuestions:
    def test_are_of_open_runs_in_order(self, order):
        runs = [placed(order, S.CREATED, key=str(number)) for number in range(3)]
        placed(order, S.BOOKED, ended_at="2026-03-01T10:00Z", end_reason="BOOKED")
        placed(order, S.CREATED, machine=type("Other", (Booking,), {"name": "other"}))

        assert self.to_move(order) == sorted(runs, key=lambda run: run.pk)
        assert self.to_move(order, "1") == [runs[1]]

    @staticmethod
    def to_move(order, key=None):
        return runs_to_move([ref_of(order)], {"booking": key}, using="default")

    def test_are_not_of_runs_that_began_before_there_was_a_machine(self, order):
        TimelineRun.objects.create(
            timeline="booking", entity_label="testapp.order", entity_id=str(order.pk), started_at="2026-03-01T09:00Z"
        )

        assert self.to_move(order) == []

    def test_are_of_the_last_that_ended(self, order):
        for key, hour in itertools.product("ab", (11, 10, 12)):
            ended = {"ended_at": f"2026-03-01T{hour}:00Z", "end_reason": "x"}
            placed(order, S.BOOKED, key=key, started_at=f"2026-02-01T{hour}:00Z", **ended)

        for asked, key in (
            ("a", "a"),
            ("b", "b"),
            (None, "b"),
        ):  # Of those that ended at the same time, that of the last id.
            [found] = last_moved([ref_of(order)], {"booking": asked}, using="default")
            assert (found.key, found.ended_at.hour) == (key, 12)

    @pytest.mark.only_postgresql
    def test_lock_what_they_find(self, order):
        with connection.execute_wrapper(lambda run, sql, *rest: (asked.append(sql), run(sql, *rest))[1]):
            asked = []
            self.to_move(order)

        assert "FOR NO KEY UPDATE" in asked[0]


@pytest.mark.only_postgresql
class TestLockToMove:
    @staticmethod
    def found(order, *others):
        assert can_read_ahead("default")
        return lock_to_move(ref_of(order), ["booking"], others, using="default")

    def test_gives_the_open_runs_as_they_are_read_otherwise(self, order):
        runs = [placed(order, S.CREATED, key=str(number)) for number in range(2)]
        placed(order, S.BOOKED, ended_at="2026-03-01T10:00Z", end_reason="BOOKED")
        placed(order, S.CREATED, machine=type("Other", (Booking,), {"name": "other"}))

        found = self.found(order)

        stored = runs_to_move([ref_of(order)], {"booking": None}, using="default")
        assert [run.pk for run, _rows in found] == [run.pk for run in stored] == sorted(run.pk for run in runs)
        columns = [field.attname for field in TimelineRun._meta.concrete_fields]
        for (run, _rows), known in zip(found, stored, strict=True):
            assert [getattr(run, name) for name in columns] == [getattr(known, name) for name in columns]
            assert (run._state.adding, run._state.db) == (False, "default")

    def test_gives_what_is_open_and_all_of_what_is_bound_to_no_state(self, order, make_task):
        run = placed(order, S.CREATED)
        ended = {"state": "completed", "reason_code": "done", "finished_at": "2026-03-01T10:00Z"}
        about = {"run": run, "entity_label": run.entity_label, "entity_id": run.entity_id}
        opened = make_task(**about, task_key="booking.a", occurrence="2")
        make_task(**about, task_key="booking.a", occurrence="1", **ended)
        other = make_task(**about, task_key="booking.b", **ended)
        make_task(task_key="booking.a", occurrence="9")

        assert self.rows(self.found(order)) == {opened.pk}
        assert self.rows(self.found(order, "booking.b")) == {opened.pk, other.pk}
        [(_run, [task])] = self.found(order)
        assert all(
            getattr(task, field.attname) == getattr(ScheduledTask.objects.get(pk=opened.pk), field.attname)
            for field in ScheduledTask._meta.concrete_fields
        )

    @staticmethod
    def rows(found):
        [(_run, tasks)] = found
        return {task.pk for task in tasks}

    def test_reads_and_locks_no_row_where_none_is_asked_for(self, order, make_task):
        run = placed(order, S.CREATED)
        task = make_task(run=run, entity_label=run.entity_label, entity_id=run.entity_id, task_key="booking.a")

        assert lock_to_move(ref_of(order), ["booking"], None, using="default") == [(run, [])]
        assert self.is_free(task)
        assert lock_to_move(ref_of(order), ["booking"], [], using="default") == [(run, [task])]
        assert not self.is_free(task)

    @staticmethod
    def is_free(task):
        """Whether nobody has locked its row, or has changed it: its xmax tells."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT xmax = '0' FROM timeline_scheduledtask WHERE id = %s", [task.pk])
            return cursor.fetchone()[0]

    def test_has_runs_without_rows(self, order):
        run = placed(order, S.CREATED)

        assert self.found(order) == [(run, [])]


@pytest.mark.only_postgresql
class TestLockEntityToMove:
    def test_gives_what_is_given_without_the_entity_in_one_statement(self, order, django_assert_num_queries):
        placed(order, S.CREATED)
        with django_assert_num_queries(1):
            at, found = lock_entity_to_move(ref_of(order), ["booking"], [], using="default")

        assert at.utcoffset() == timedelta(0)
        assert found == lock_to_move(ref_of(order), ["booking"], [], using="default")

    @pytest.mark.parametrize("way", ["prepared", "bound by the server", "pipelined", "by a wrapper that goes on"])
    def test_gives_the_same_where_no_two_statements_can_be_sent_as_one_text(self, order, make_task, monkeypatch, way):
        run = placed(order, S.CREATED)
        make_task(run=run, entity_label=run.entity_label, entity_id=run.entity_id, task_key="booking.a")
        at_once = self.found(order)

        with ExitStack() as stack:
            driver = connection.connection
            if way == "prepared":
                monkeypatch.setattr(driver, "prepare_threshold", 5)
            elif way == "bound by the server":
                monkeypatch.setattr(driver, "cursor_factory", psycopg.Cursor)
            elif way == "pipelined":
                stack.enter_context(driver.pipeline())
            else:
                stack.enter_context(connection.execute_wrapper(_goes_on))
            told = self.found(order)
            with pytest.raises(WrongEntity):
                lock_entity_to_move(EntityRef("testapp.order", "0"), ["booking"], [], using="default")

        assert told == at_once
        assert len(told[0][1]) == 1

    @staticmethod
    def found(order):
        _at, found = lock_entity_to_move(ref_of(order), ["booking"], [], using="default")
        return found

    @pytest.mark.parametrize("as_text", [True, False])
    def test_sees_that_the_transaction_may_not_see_what_is_there(self, order, monkeypatch, as_text):
        monkeypatch.setattr(connection.connection, "prepare_threshold", None if as_text else 5)
        monkeypatch.setattr("timeline.features.machines.store.has_to_ask", lambda using: True)
        with connection.execute_wrapper(_as_if_repeatable), pytest.raises(WrongIsolation):
            lock_entity_to_move(ref_of(order), ["booking"], [], using="default")

    def test_gives_no_run_where_there_is_none(self, order):
        assert lock_entity_to_move(ref_of(order), ["booking"], [], using="default")[1] == []

    def test_says_that_an_entity_is_not_there(self):
        with pytest.raises(WrongEntity):
            lock_entity_to_move(EntityRef("testapp.order", "0"), ["booking"], [], using="default")

    def test_asks_nothing_where_there_is_more_to_the_lock(self, django_assert_num_queries):
        with django_assert_num_queries(0):
            assert lock_entity_to_move(EntityRef("testapp.parcel", "x"), ["booking"], [], using="default") is None


def _goes_on(execute, sql, params, many, context):
    """As a wrapper of the host's that reads all that a text gave."""
    result = execute(sql, params, many, context)
    while context["cursor"].nextset():
        pass
    return result


def _as_if_repeatable(execute, sql, params, many, context):
    return execute(sql.replace("current_setting('transaction_isolation')", "'repeatable read'"), params, many, context)


def test_edges_are_those_of_the_table():
    assert set(Edge.objects.values_list("from_state", "to_state")) == EDGES
