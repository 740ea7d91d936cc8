"""What the database refuses by itself: CHECKs and unique keys, one broken at a time."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction

from tests.databases import VENDOR
from tests.testapp.models import Country, Order, Parcel
from timeline.lifecycle import FINAL, LEASED, OPEN, ReasonCode, State
from timeline.models import Event, LogEntry, ScheduledTask, TimelineRun, ref_of

# 8999 and 1970 are the last and the first that pass.
OUTSIDE = [datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)]
INSIDE = [datetime(1970, 1, 1, tzinfo=UTC), datetime(8999, 12, 31, 23, 59, 59, tzinfo=UTC)]


class Refusal:
    """
    What a test expects of the block: the constraint of this name is broken, and the test's transaction lives on.

    Of a unique key SQLite names the columns instead; ``columns`` matches those.
    """

    def __init__(self, name, columns=None):
        said = columns if columns and connection.vendor == "sqlite" else name
        self.raises = pytest.raises(IntegrityError, match=said)
        self.savepoint = transaction.atomic()

    def __enter__(self):
        self.raises.__enter__()
        self.savepoint.__enter__()

    def __exit__(self, *error):
        self.savepoint.__exit__(*error)
        return self.raises.__exit__(*error)


@pytest.fixture(params=[Order, Parcel, Country], ids=lambda model: model.__name__)
def named(request, db):
    """The columns that name an entity with an integer, a UUID and a string key."""
    entity = Country.objects.create(code="fr") if request.param is Country else request.param.objects.create()
    label, key = ref_of(entity)
    return {"entity_label": label, "entity_id": key}


@pytest.fixture
def make_run(db, now):
    """Make a run: ``make_run(key="a", …)``."""
    return lambda **columns: TimelineRun.objects.create(**{"timeline": "trial", "started_at": now} | columns)


@pytest.fixture
def make_event(db, now):
    """Make an event: ``make_event(key="a", …)``."""
    return lambda **columns: Event.objects.create(
        **{"name": "user.created", "occurred_at": now, "recorded_at": now} | columns
    )


@pytest.fixture
def log(now):
    """Log a step of a task: ``log(task, …)``."""
    columns = {"seq": 1, "at": now, "attempt": 0, "from_state": "scheduled", "to_state": "available"}
    return lambda task, **others: LogEntry.objects.create(task=task, **columns | others)


def delete(row):
    """Delete it past Django, which would look for what names it."""
    type(row).objects.filter(pk=row.pk)._raw_delete("default")
    connection.check_constraints()  # SQLite's keys wait for the commit.


class TestState:
    def test_must_be_known(self, make_task):
        # It breaks several rules; SQLite names this one first.
        with Refusal("timeline_task_", "timeline_task_state_known"):
            make_task(state="asleep", reason_code="operator")

    @pytest.mark.parametrize("state", State)
    def test_may_be_any_of_the_table(self, make_task, state):
        assert make_task(state=state).pk


class TestFinishedAt:
    @pytest.mark.parametrize("state", sorted(FINAL))
    def test_must_be_there_at_the_end(self, make_task, state):
        with Refusal("timeline_task_final_finished"):
            make_task(state=state, finished_at=None)

    @pytest.mark.parametrize("state", sorted(OPEN))
    def test_must_not_be_there_before(self, make_task, now, state):
        with Refusal("timeline_task_final_finished"):
            make_task(state=state, finished_at=now)


class TestLease:
    @pytest.mark.parametrize("state", sorted(LEASED))
    def test_must_be_there_while_the_task_is_held(self, make_task, state):
        with Refusal("timeline_task_held_by_lease"):
            make_task(state=state, lease_expires_at=None)

    @pytest.mark.parametrize("state", sorted(set(State) - LEASED))
    def test_must_not_be_there_otherwise(self, make_task, now, state):
        with Refusal("timeline_task_held_by_lease"):
            make_task(state=state, lease_expires_at=now)


class TestReasonCode:
    @pytest.mark.parametrize("state", sorted(FINAL))
    def test_must_be_there_at_the_end(self, make_task, state):
        with Refusal("timeline_task_end_has_reason"):
            make_task(state=state, reason_code="")

    @pytest.mark.parametrize("state", State)
    def test_must_be_of_the_closed_set(self, make_task, state):
        with Refusal("timeline_task_end_has_reason"):
            make_task(state=state, reason_code="whim")

    @pytest.mark.parametrize("code", ReasonCode)
    def test_may_be_any_of_the_set(self, make_task, code):
        assert make_task(state=State.CANCELLED, reason_code=code).pk


class TestDates:
    @pytest.mark.parametrize("at", OUTSIDE, ids=str)
    @pytest.mark.parametrize(
        "column",
        ["nominal_at", "scheduled_at", "created_at", "anchor_value", "expires_at", "started_at", "finished_at"],
    )
    def test_of_a_task_must_be_in_range(self, make_task, column, at):
        with Refusal("timeline_task_in_range"):
            make_task(state=State.CANCELLED if column == "finished_at" else State.SCHEDULED, **{column: at})

    @pytest.mark.parametrize("at", INSIDE, ids=str)
    def test_of_a_task_may_be_at_the_ends_of_the_range(self, make_task, at):
        task = make_task(nominal_at=at, created_at=at, anchor_value=at, expires_at=at, started_at=at)

        task.refresh_from_db()
        assert task.scheduled_at == at

    @pytest.mark.parametrize("at", OUTSIDE, ids=str)
    @pytest.mark.parametrize("column", ["started_at", "ended_at"])
    def test_of_a_run_must_be_in_range(self, make_run, column, at):
        with Refusal("timeline_run_in_range"):
            make_run(**{column: at}, end_reason="closed" if column == "ended_at" else "")

    @pytest.mark.parametrize("at", OUTSIDE, ids=str)
    @pytest.mark.parametrize("column", ["occurred_at", "recorded_at"])
    def test_of_an_event_must_be_in_range(self, make_event, column, at):
        with Refusal("timeline_event_in_range"):
            make_event(**{column: at})


class TestEntity:
    @pytest.mark.parametrize("half", [{"entity_label": "testapp.order"}, {"entity_id": "1"}], ids=str)
    def test_must_be_whole(self, make_task, make_run, make_event, half):
        for make, constraint in (
            (make_task, "timeline_task_entity_whole"),
            (make_run, "timeline_run_entity_whole"),
            (make_event, "timeline_event_entity_whole"),
        ):
            with Refusal(constraint):
                make(**half)

    def test_may_be_none_at_all(self, make_task, make_run, make_event):
        assert all(make(entity_label="", entity_id="").pk for make in (make_task, make_run, make_event))


class TestTasksOfARun:
    def test_are_one_for_each_revision(self, make_run, make_task, named):
        run = make_run(**named)
        make_task(run=run, occurrence="1", state=State.CANCELLED, **named)

        with Refusal("timeline_task_revision", r"UNIQUE.*run_id.*revision$"):
            make_task(run=run, occurrence="1", state=State.CANCELLED, **named)

    def test_are_open_in_one_revision_at_most(self, make_run, make_task, named):
        run = make_run(**named)
        make_task(run=run, occurrence="1", **named)

        with Refusal("timeline_task_one_open", r"UNIQUE.*run_id.*occurrence$"):
            make_task(run=run, occurrence="1", revision=2, state=State.RETRYABLE, **named)
        assert make_task(run=run, occurrence="1", revision=2, state=State.CANCELLED, **named).pk

    @pytest.mark.parametrize("other", [{"occurrence": "2"}, {"task_key": "trial.expire"}, {"run": True}], ids=str)
    def test_may_be_many_otherwise(self, make_run, make_task, named, other):
        columns = {"run": make_run(**named), "occurrence": "1", **named}
        make_task(**columns)
        if other.pop("run", False):
            other["run"] = make_run(key="second", **named)

        assert make_task(**columns | other).pk


class TestAdHocTasks:
    def test_are_one_for_each_revision(self, make_task, named):
        make_task(occurrence="k", state=State.COMPLETED, **named)

        with Refusal("timeline_adhoc_revision", r"UNIQUE.*entity_label.*revision$"):
            make_task(occurrence="k", state=State.CANCELLED, **named)

    def test_are_open_in_one_revision_at_most(self, make_task, named):
        make_task(occurrence="k", state=State.PENDING, **named)

        with Refusal("timeline_adhoc_one_open", r"UNIQUE.*entity_label.*occurrence$"):
            make_task(occurrence="k", revision=2, **named)

    @pytest.mark.parametrize(
        "other", [{"occurrence": "l"}, {"task_key": "trial.expire"}, {"entity_id": "another"}], ids=str
    )
    def test_may_be_many_otherwise(self, make_task, named, other):
        columns = {"occurrence": "k", **named}
        make_task(**columns)

        assert make_task(**columns | other).pk

    def test_are_not_those_of_a_run(self, make_run, make_task, named):
        make_task(run=make_run(**named), occurrence="k", **named)

        assert make_task(occurrence="k", **named).pk

    def test_of_no_entity_are_kept_apart_too(self, make_task):
        make_task(occurrence="k")

        with Refusal("timeline_adhoc_", r"UNIQUE.*entity_label.*"):
            make_task(occurrence="k")


class TestRuns:
    def test_are_open_once_for_each_timeline_entity_and_key(self, make_run, named):
        make_run(**named)

        with Refusal("timeline_run_one_open", r"UNIQUE.*timelinerun.key$"):
            make_run(**named)

    @pytest.mark.parametrize("other", [{"key": "b"}, {"timeline": "other"}, {"entity_id": "another"}], ids=str)
    def test_may_be_many_otherwise(self, make_run, named, other):
        make_run(**named)

        assert make_run(**named | other).pk

    def test_may_be_many_that_have_ended(self, make_run, named, now):
        for _ in range(2):
            make_run(ended_at=now, end_reason="finished", **named)

        assert make_run(**named).pk

    @pytest.mark.parametrize("end", [{"ended_at": True, "end_reason": ""}, {"ended_at": None, "end_reason": "closed"}])
    def test_have_a_reason_just_when_they_have_ended(self, make_run, now, end):
        with Refusal("timeline_run_end_has_reason"):
            make_run(ended_at=end["ended_at"] and now, end_reason=end["end_reason"])


class TestEvents:
    def test_are_once_for_each_key(self, make_event, named):
        make_event(key="k", **named)

        with Refusal("timeline_event_once_per_key", r"UNIQUE.*event.key$"):
            make_event(key="k", **named)

    def test_without_a_key_may_be_many(self, make_event, named):
        make_event(**named)

        assert make_event(**named).pk

    @pytest.mark.parametrize("other", [{"name": "other"}, {"entity_id": "another"}, {"key": "l"}], ids=str)
    def test_with_another_name_entity_or_key_are_others(self, make_event, named, other):
        make_event(key="k", **named)

        assert make_event(**{"key": "k"} | named | other).pk


class TestLog:
    def test_has_one_entry_for_each_step(self, make_task, log):
        task = make_task()
        log(task)

        with Refusal("timeline_log_seq", r"UNIQUE.*logentry.seq$"):
            log(task)
        assert log(task, seq=2).pk


class TestWhatRowsHangOn:
    # PostgreSQL would check the others row by row, each time with a lock; there triggers keep what is named.
    @pytest.mark.parametrize("column", ["run_id", "cause_id", "previous_id"] if VENDOR == "sqlite" else ["previous_id"])
    def test_must_be_there(self, make_task, column):
        make_task(**{column: uuid4()})

        with pytest.raises(IntegrityError, match="foreign key"), transaction.atomic():
            connection.check_constraints()
        ScheduledTask.objects.all().delete()

    @pytest.mark.parametrize("naming", ["started_by", "cause", "run", "task"])
    def test_stays_while_it_is_named(self, make_task, make_run, make_event, log, naming):
        named = {
            "started_by": lambda: make_run(started_by=make_event()).started_by,
            "cause": lambda: make_task(cause=make_event()).cause,
            "run": lambda: make_task(run=make_run()).run,
            "task": lambda: log(make_task()).task,
        }[naming]()

        with pytest.raises(IntegrityError, match=r"(?i)timeline: a row of|foreign key"), transaction.atomic():
            delete(named)
        assert type(named).objects.filter(pk=named.pk).exists()

    def test_goes_when_nothing_names_it(self, make_task, make_run, make_event):
        rows = [make_task(), make_run(), make_event()]

        for row in rows:
            delete(row)

        assert [type(row).objects.count() for row in rows] == [0, 0, 0]
