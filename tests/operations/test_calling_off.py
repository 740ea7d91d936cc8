"""Call off: whatever is open of an entity or of runs is cancelled, but for what is being run right now."""

from __future__ import annotations

from contextvars import copy_context

import pytest

from timeline.dialects import dialect_of
from timeline.lifecycle import FINAL, OPEN, Reason, State
from timeline.models import TimelineRun
from timeline.operations.current import now_running
from timeline.operations.leave import call_off
from timeline.signals import tasks_ended
from timeline.store.returned_rows import COLUMNS

REASON = Reason.operator("asked for", "ada")
ENTITY = {"entity_label": "testapp.order", "entity_id": "7"}
NAMED = {"label": "testapp.order", "entity": "7"}


@pytest.fixture
def act(db, now):
    return lambda whose="entity", named=NAMED, **given: call_off(
        whose, named, reason=REASON, now=now, using="default", **given
    )


class TestCallOff:
    def test_cancels_what_is_open_of_an_entity_the_oldest_first(self, act, make_task, now):
        rows = [make_task(state=state, occurrence=state, **ENTITY) for state in sorted(OPEN)]
        for state in FINAL:
            make_task(state=state, occurrence=state, **ENTITY)
        make_task(**ENTITY | {"entity_id": "8"})
        make_task()

        done = act()

        assert done == rows
        for row in done:
            row.refresh_from_db()
            assert (row.state, row.finished_at, row.reason, row.actor) == ("cancelled", now, "asked for", "ada")
            assert row.log.get().to_state == "cancelled"

    @pytest.mark.parametrize(
        ("name", "found"), [(("testapp.order", "7"), True), (("testapp.parcel", "7"), False)], ids=str
    )
    def test_finds_what_is_open_by_any_of_several_names(self, act, make_task, name, found):
        row = make_task(**ENTITY)

        done = act("kin", dialect_of("default").entities_of([("testapp.parcel", "1"), name]))

        assert done == ([row] if found else [])

    def test_finds_what_is_open_of_runs(self, act, make_task, now):
        mine, other = (TimelineRun.objects.create(timeline="trial", key=key, started_at=now, **ENTITY) for key in "ab")
        row = make_task(run=mine, **ENTITY)
        make_task(run=other, **ENTITY)
        make_task(**ENTITY)

        assert act("runs", {"runs": dialect_of("default").list_of([mine.pk.hex])}) == [row]

    def test_spares_the_task_that_is_being_run(self, act, make_task):
        own, other = (make_task(state=State.ACTIVE, occurrence=name, **ENTITY) for name in "ab")

        def handler():
            now_running(own.pk)
            return act()

        assert copy_context().run(handler) == [other]
        own.refresh_from_db()
        assert own.state == State.ACTIVE

    def test_asks_once_for_nothing(self, act, django_assert_num_queries):
        with django_assert_num_queries(1):
            assert act() == []

    def test_reads_the_columns_asked_for_and_the_rest_when_it_is_needed(
        self, act, make_task, django_assert_num_queries
    ):
        make_task(payload={"n": 1}, **ENTITY)

        [row] = act(columns=COLUMNS)

        with django_assert_num_queries(0):
            assert (row.state, row.payload) == ("cancelled", {"n": 1})

    def test_tells_those_who_listen(self, act, make_task, django_capture_on_commit_callbacks):
        row, told = make_task(**ENTITY), []

        def listen(endings, **extra):
            told.extend((ending.task_id, ending.state, ending.task_key) for ending in endings)

        tasks_ended.connect(listen)
        try:
            with django_capture_on_commit_callbacks(execute=True):
                act()
        finally:
            tasks_ended.disconnect(listen)

        assert told == [(row.pk, "cancelled", "trial.remind")]
