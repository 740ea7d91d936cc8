"""An entity that cannot be read: its tasks fail, alone, and whatever ends them is written all the same."""

from __future__ import annotations

import re

import pytest
from django.db import connection, models
from django.db.models import Func, Q
from django.db.models.functions import Cast
from django.db.models.lookups import GreaterThan

from tests.databases import VENDOR
from tests.testapp.models import Account, Order, Reseller
from timeline import Retry, Timeline, after, task
from timeline.clocks import story_time
from timeline.dispatch.rescue import rescue
from timeline.exceptions import UnreadableEntity
from timeline.features.sweep.verbs import sweep
from timeline.lifecycle import Reason, State
from timeline.models import ScheduledTask, TimelineRun
from timeline.operations.cancel import cancel, cancel_all
from timeline.operations.leave import leave
from timeline.operations.move import move, run_now
from timeline.operations.reconcile import reconcile
from timeline.operations.redrive import redrive
from timeline.reading.explanation import explain
from timeline.store.returned_rows import MANY
from timeline.testing import only_timelines
from timeline.timing import EARLIEST
from timeline.worker import Worker

OPERATOR = Reason.operator("asked for", "ada")
FACES = ["value", "infinity", "zone"] if VENDOR == "postgresql" else ["value", "zone"]
BROKEN = "sealed"


def unseal(value, *_rest):
    """Read a value of which the key was lost."""
    if value == BROKEN:
        raise ValueError(f"the key of {value!r} is lost")
    return value


@pytest.fixture
def seals(monkeypatch):
    """Let notes and zones be such that some cannot be read."""
    monkeypatch.setattr(Order._meta.get_field("note"), "from_db_value", unseal, raising=False)
    monkeypatch.setattr(Order, "place", property(lambda order: unseal(order.language)), raising=False)


@pytest.fixture(params=FACES)
def face(request, seals):
    """What is wrong with the entity."""
    return request.param


@pytest.fixture
def spoil(face):
    """Make an order unreadable: ``spoil(pk)``."""
    return {"value": spoil_value, "infinity": spoil_date, "zone": spoil_zone}[face]


def spoil_value(pk):
    Order.objects.filter(pk=pk).update(note=BROKEN)


def spoil_zone(pk):
    Order.objects.filter(pk=pk).update(language=BROKEN)


def spoil_date(pk):
    with connection.cursor() as cursor:
        cursor.execute("UPDATE testapp_order SET ships_at = 'infinity' WHERE id = %s", [pk])


def mend(pk, now):
    Order.objects.filter(pk=pk).update(note="", language="", ships_at=now)


PLACE = {"time_zone": "place", "language": ""}
WHENS = [after(days=1), after("ships_at", days=1)]


@pytest.fixture
def spoiled(crowd, spoil):
    """A task whose order cannot be read: ``spoiled(handler, …)`` gives its row."""

    def make(handler=lambda job, order: None, **options):
        [row] = crowd(1, handler, declared=PLACE, **{"when": WHENS[1]} | options)
        spoil(row.entity_id)
        return row

    return make


class TestTheLastLook:
    @pytest.mark.parametrize(
        ("when", "options"),
        [
            (WHENS[0], {}),
            (WHENS[1], {}),
            (WHENS[1], {"atomic": False}),
            (WHENS[1], {"atomic": "shared"}),
            (WHENS[1], {"bulk": 10}),
        ],
    )
    def test_fails_the_attempt_of_that_task_alone(self, crowd, run_all, spoil, when, options):
        """Its neighbours run; it says what could not be read, counts a failure and is tried again."""
        rows = crowd(3, when=when, declared=PLACE, **options)
        spoil(rows[1].entity_id)

        first, failed, last = run_all(rows)

        assert (first.state, last.state) == (State.COMPLETED, State.COMPLETED)
        assert (failed.state, failed.failures, failed.reason_code) == (State.RETRYABLE, 1, "error")
        assert "cannot be read" in failed.error
        [detail] = failed.log.filter(to_state=State.RETRYABLE).values_list("detail", flat=True)
        assert re.search("the key of 'sealed' is lost|infinity", detail["error"]["traceback"])

    @pytest.mark.only_postgresql
    def test_fails_it_alone_among_so_many_that_django_does_not_make_the_entities(self, crowd, run_all):
        rows = crowd(MANY + 1, when=WHENS[0])
        spoil_date(rows[3].entity_id)

        states = [row.state for row in run_all(rows)]

        assert states.pop(3) == State.RETRYABLE
        assert set(states) == {State.COMPLETED}

    def test_fails_it_for_good_when_the_budget_is_used_up(self, spoiled, run_at, later):
        seen = []
        row = spoiled(lambda job, order: seen.append(1), retry=Retry(max_attempts=1))

        done = run_at(row, later)

        assert (done.state, done.reason_code, seen) == (State.DISCARDED, "error", [])
        assert TimelineRun.objects.get().is_open

    def test_is_told_by_explain(self, spoiled, run_at, later):
        done = run_at(spoiled(), later)

        assert "UnreadableEntity" in explain(done, now=later, using="default")

    def test_lets_it_run_once_the_entity_is_mended(self, spoiled, run_at, later, now):
        row = run_at(spoiled(), later)
        mend(row.entity_id, now)

        assert run_at(row, row.scheduled_at).state == State.COMPLETED

    @pytest.mark.django_db(transaction=True)
    def test_fails_only_the_one_whose_condition_cannot_be_asked(self, crowd, run_all):
        """The database refuses the statement for all that are asked together: then they are asked one by one."""
        rows = crowd(3, only_if=Q(GreaterThan(NUMBER, 0)))
        Order.objects.update(note="1")
        Order.objects.filter(pk=rows[1].entity_id).update(note="no number")

        first, failed, last = run_all(rows)

        assert (first.state, failed.state, last.state) == (State.COMPLETED, State.RETRYABLE, State.COMPLETED)
        assert (failed.failures, failed.reason_code) == (1, "error")


# The text of a note as a number, which the database refuses to make of other text.
NUMBER = Cast("note", models.IntegerField()) if VENDOR == "postgresql" else Func("note", function="json")


class TestAnEnding:
    """Whatever ends a task is written, though its run cannot be reconciled."""

    def test_is_recorded_of_an_attempt_whose_entity_was_spoiled_meanwhile(self, spoil, crowd, run_at, later):
        [row] = crowd(1, lambda job, order: spoil(order.pk), declared=PLACE, when=WHENS[1])

        assert run_at(row, later).state == State.COMPLETED

    def test_is_recorded_of_a_group(self, spoil, crowd, run_all):
        rows = crowd(3, lambda job, order: spoil(order.pk), declared=PLACE, when=WHENS[1], atomic=False)

        assert {row.state for row in run_all(rows)} == {State.COMPLETED}

    def test_leaves_the_run_to_be_reconciled(self, spoil, crowd, run_at, later, caplog):
        [row] = crowd(1, lambda job, order: spoil(order.pk), declared=PLACE, when=WHENS[1])

        run_at(row, later)

        assert "is not reconciled until its entity is mended" in caplog.text
        assert not ScheduledTask.objects.open().exists()
        assert TimelineRun.objects.get().is_open

    @pytest.mark.parametrize("mended_by", ["save", "reconcile", "sweep"])
    def test_is_followed_up_once_the_entity_is_mended(self, spoil, crowd, run_at, later, now, mended_by):
        [row] = crowd(1, lambda job, order: spoil(order.pk), declared=PLACE, when=WHENS[1])
        run_at(row, later)
        mend(row.entity_id, now)

        if mended_by == "save":
            Order.objects.get(pk=row.entity_id).save()
        elif mended_by == "sweep":
            while sweep(now=later, using="default").left:
                pass
        else:
            reconcile(entity=row.entity_ref, now=later, using="default")

        assert ScheduledTask.objects.open().get().task_key == "crowd.follow"

    def test_is_recorded_of_a_lost_attempt(self, spoiled, now):
        row = spoiled()
        given_up = {"state": State.ACTIVE, "lease_expires_at": EARLIEST, "attempt": 9, "lost": 9}
        ScheduledTask.objects.filter(pk=row.pk).update(**given_up)

        rescued = rescue(now=now, using="default")

        assert [task.pk for task in rescued.discarded] == [row.pk]
        row.refresh_from_db()
        assert (row.state, row.reason_code) == (State.DISCARDED, "worker_lost")

    def test_is_recorded_beside_those_of_others(self, crowd, spoil, now):
        """Whoever lost its last attempt is given up, with or without its entity."""
        rows = crowd(3, declared=PLACE, when=WHENS[1])
        spoil(rows[1].entity_id)
        ScheduledTask.objects.update(state=State.ACTIVE, lease_expires_at=EARLIEST, attempt=9, lost=9)

        rescue(now=now, using="default")

        assert set(ScheduledTask.objects.values_list("state")) == {(State.DISCARDED,)}


@pytest.mark.django_db(transaction=True)
class TestAWorker:
    def test_goes_on(self, crowd, spoil, later):
        """Each of its neighbours is run in the same poll."""
        rows = crowd(4, declared=PLACE, when=WHENS[1])
        spoil(rows[1].entity_id)

        with story_time(lambda: later):
            Worker("default").poll()

        states = [ScheduledTask.objects.get(pk=row.pk).state for row in rows]
        assert states == [State.COMPLETED, State.RETRYABLE, State.COMPLETED, State.COMPLETED]


class TestAnOperator:
    def test_cancels(self, spoiled, now):
        [done] = cancel(task_ids=[spoiled().pk], reason=OPERATOR, now=now, using="default")

        assert (done.state, done.reason) == (State.CANCELLED, "asked for")

    def test_cancels_it_with_others(self, crowd, spoil, now):
        rows = crowd(3, declared=PLACE, when=WHENS[1])
        spoil(rows[1].entity_id)

        done = cancel(task_ids=[row.pk for row in rows], reason=OPERATOR, now=now, using="default")

        assert {task.state for task in done} == {State.CANCELLED}
        ended = dict(TimelineRun.objects.values_list("entity_id", "end_reason"))
        assert ended == {rows[0].entity_id: "finished", rows[1].entity_id: "", rows[2].entity_id: "finished"}

    def test_cancels_all(self, spoiled, now):
        done = cancel_all(ref=spoiled().entity_ref, reason=OPERATOR, now=now, using="default")

        assert [task.state for task in done] == [State.CANCELLED]

    def test_moves(self, spoiled, now, later):
        [moved] = move(task_ids=[spoiled().pk], at=later, reason=OPERATOR, now=now, using="default")

        assert moved.scheduled_at == later

    def test_runs_now(self, spoiled, now):
        [task] = run_now(task_ids=[spoiled().pk], reason=OPERATOR, now=now, using="default")

        assert task.state == State.AVAILABLE

    def test_redrives(self, spoiled, now):
        row = spoiled()
        cancel(task_ids=[row.pk], reason=OPERATOR, now=now, using="default")

        [again] = redrive(task_ids=[row.pk], reason=OPERATOR, now=now, using="default")

        assert (again.state, again.previous) == (State.AVAILABLE, row)

    def test_leaves(self, spoiled, now):
        ref = spoiled().entity_ref

        run = leave(timeline="crowd", entity=ref, key="", reason="over", actor="", now=now, using="default")

        assert run.end_reason == "over"
        assert ScheduledTask.objects.get().state == State.CANCELLED


class TestAnEvent:
    def test_ends_the_run(self, spoiled, emit_at, now):
        ref = spoiled().entity_ref

        emission = emit_at("order.closed", ref, now)

        assert [run.end_reason for run in emission.ended] == ["closed"]
        assert ScheduledTask.objects.get().state == State.CANCELLED


class TestARefusal:
    """Where the entity is asked for, it is said what is wrong with it."""

    def test_meets_who_starts_a_timeline(self, spoiled, start_at, now):
        ref = spoiled().entity_ref
        TimelineRun.objects.update(ended_at=now, end_reason="over")

        with pytest.raises(UnreadableEntity, match=r"testapp\.order .* cannot be read") as refused:
            start_at("crowd", ref, now)

        assert refused.value.__cause__ is not None
        assert TimelineRun.objects.count() == 1

    def test_meets_who_reconciles(self, spoiled, now):
        ref = spoiled().entity_ref

        with pytest.raises(UnreadableEntity):
            reconcile(entity=ref, now=now, using="default")

        assert ScheduledTask.objects.get().state == State.SCHEDULED


class TestAnInheritedEntity:
    """Its parents' rows are locked with it; none of them needs be read for that."""

    @pytest.fixture(autouse=True)
    def _sealed(self, monkeypatch):
        monkeypatch.setattr(Account._meta.get_field("note"), "from_db_value", unseal, raising=False)

    def test_can_be_left_and_cancelled(self, start_at, now):
        class Visit(Timeline):
            entity = "testapp.Reseller"

            @task(after("visits_at", days=1))
            def call(self, reseller):
                return None

        with only_timelines(Visit):
            reseller = Reseller.objects.create(visits_at=now)
            run = start_at("visit", reseller, now).run
            Account.objects.update(note=BROKEN)

            [done] = cancel(task_ids=[run.tasks.get().pk], reason=OPERATOR, now=now, using="default")
            left = leave(timeline="visit", entity=run.entity_ref, key="", reason="over", actor="", using="default")

        assert (done.state, left.end_reason) == (State.CANCELLED, "over")
