"""New rows: as the next revision of a row, and inserted where their place is free."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction

from timeline import Retry, Timeline, task
from timeline.exceptions import AlreadyOpen
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.store.new_rows import (
    create_missing,
    create_tasks,
    declared_columns,
    expiry_at,
    next_revision,
    options_of,
    state_at,
)
from timeline.testing import only_timelines

HOUR = timedelta(hours=1)


class Parcelling(Timeline):
    entity = "testapp.Order"

    @task(priority=4, queue="mail", retry=Retry(max_attempts=7), expires=3 * HOUR)
    def pack(self, order): ...

    @task()
    def call(self, order): ...


@pytest.fixture(autouse=True)
def _known():
    with only_timelines(Parcelling):
        yield


class TestStateAt:
    def test_is_available_when_it_is_due_already(self, now):
        moment = timedelta(microseconds=1)

        assert [state_at(at, now) for at in (now - HOUR, now, now + moment)] == ["available", "available", "scheduled"]


class TestOptionsOf:
    def test_are_what_is_declared(self):
        declared = Parcelling.definition.tasks["pack"]

        assert options_of(declared) == {"priority": 4, "queue": "mail", "max_attempts": 7}

    def test_have_the_budget_of_the_settings_where_none_is_declared(self, settings):
        settings.TIMELINE = {"MAX_ATTEMPTS": 3}

        assert options_of(Parcelling.definition.tasks["call"])["max_attempts"] == 3


class TestDeclaredColumns:
    def test_name_the_task_and_what_it_was_declared_as(self):
        columns = declared_columns(Parcelling.definition, "pack")

        assert columns["task_key"] == "parcelling.pack"
        assert columns["definition_hash"] == Parcelling.definition.tasks["pack"].fingerprint
        assert columns["max_attempts"] == 7


class TestExpiryAt:
    @pytest.mark.parametrize(
        ("task_key", "after"), [("parcelling.pack", 3 * HOUR), ("parcelling.call", None), ("gone.call", None)]
    )
    def test_is_as_long_after_as_is_declared(self, now, task_key, after):
        assert expiry_at(task_key, now) == (after and now + after)


class TestNextRevision:
    @pytest.fixture
    def ended(self, make_task, now):
        return lambda task_key: make_task(
            task_key=task_key,
            state=State.DISCARDED,
            occurrence="k",
            revision=2,
            payload={"n": 1},
            priority=-5,
            queue="own",
            attempt=9,
            failures=8,
            max_attempts=2,
            anchor="field:ships_at",
            anchor_value=now,
            entity_label="testapp.order",
            entity_id="1",
        )

    def test_carries_on_where_the_row_ended(self, ended, now):
        row = ended("parcelling.pack")

        made = next_revision(row, now + HOUR, now=now)

        assert (made.revision, made.previous, made.occurrence) == (3, row, "k")
        assert (made.entity_ref, made.payload, made.anchor, made.anchor_value) == (
            row.entity_ref,
            {"n": 1},
            "field:ships_at",
            now,
        )
        assert (made.state, made.scheduled_at, made.nominal_at) == ("scheduled", now + HOUR, row.nominal_at)
        assert made._state.adding

    def test_has_fresh_budgets_and_keeps_what_somebody_gave_the_row(self, ended, now):
        made = next_revision(ended("parcelling.pack"), now, now=now)

        assert (made.attempt, made.failures, made.max_attempts) == (0, 0, 7)
        assert (made.priority, made.queue, made.expires_at) == (-5, "own", now + 3 * HOUR)

    def test_keeps_the_budget_of_one_that_is_not_known_any_more(self, ended, now):
        made = next_revision(ended("gone.pack"), now, now=now)

        assert (made.max_attempts, made.expires_at) == (2, None)


class TestCreate:
    @pytest.fixture
    def new(self, now):
        """An unsaved row of this name."""
        return lambda name, at=now + HOUR: ScheduledTask(
            task_key="parcelling.call",
            occurrence=name,
            state=state_at(at, now),
            nominal_at=at,
            scheduled_at=at,
            created_at=now,
            max_attempts=5,
        )

    def test_missing_ones_leaves_out_what_is_open(self, db, new):
        create_missing([new("a")], using="default")
        again, other = new("a"), new("b")

        assert create_missing([again, other], using="default") == [other]
        assert ScheduledTask.objects.count() == 2

    @pytest.mark.parametrize(("hours", "announced"), [(0, True), (1, False)])
    def test_announces_what_is_due(self, db, new, now, hours, announced, django_capture_on_commit_callbacks):
        with django_capture_on_commit_callbacks() as callbacks:
            create_missing([new("a", now + hours * HOUR)], using="default")

        assert bool(callbacks) is announced

    def test_all_or_none(self, db, new):
        create_tasks([new("a")], using="default")
        again = new("a")

        with pytest.raises(AlreadyOpen) as refused, transaction.atomic():
            create_tasks([new("b"), again], using="default")

        assert refused.value.task == again
        assert ScheduledTask.objects.count() == 1
