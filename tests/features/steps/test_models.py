"""Records of steps, and whose they are."""

import pytest
from django.db import DatabaseError, connection
from django.test.utils import CaptureQueriesContext

from timeline.models import StepRecord
from timeline.models.task_records import origins_of, recorded_among


@pytest.fixture
def chain(make_task):
    """Make revisions of a task in these states, each after the one before."""

    def make(*states):
        rows = []
        for number, state in enumerate(states, 1):
            rows.append(make_task(state=state, revision=number, previous=rows[-1] if rows else None))
        return rows

    return make


class TestOriginsOf:
    @pytest.mark.parametrize(
        ("states", "place"),
        [
            (["scheduled"], 0),
            (["discarded", "scheduled"], 0),
            (["cancelled", "discarded", "scheduled"], 0),
            (["completed", "scheduled"], 1),
            (["discarded", "completed", "cancelled", "scheduled"], 2),
        ],
    )
    def test_are_the_first_after_what_completed(self, chain, states, place):
        rows = chain(*states)
        last = rows[-1]

        assert origins_of({last.pk: last.previous_id}, using="default") == {last.pk: rows[place].pk}

    def test_are_found_in_one_statement_however_many_there_are(self, chain, django_assert_num_queries):
        rows = chain("completed", *["discarded"] * 5, "scheduled")
        asked = {row.pk: row.previous_id for row in rows}

        with django_assert_num_queries(1):
            found = origins_of(asked, using="default")

        assert found == {rows[0].pk: rows[0].pk} | {row.pk: rows[1].pk for row in rows[1:]}

    def test_are_their_own_where_there_is_none_before(self, chain):
        [row] = chain("active")

        with CaptureQueriesContext(connection) as queries:
            assert origins_of({row.pk: None}, using="default") == {row.pk: row.pk}
        assert len(queries) == 0


class TestRecordedAmong:
    def test_names_those_that_have_one(self, chain, now):
        first, second = chain("discarded", "scheduled")
        StepRecord.objects.create(
            origin=first.pk, name="a", task_id=first.pk, attempt=1, kind="done", recorded_at=now, seconds=1
        )

        assert recorded_among([first.pk, second.pk], using="default") == {first.pk}


def test_there_is_one_record_of_a_step(chain, now):
    [row] = chain("active")
    given = {"origin": row.pk, "name": "a", "task_id": row.pk, "attempt": 1, "recorded_at": now, "seconds": 1}
    StepRecord.objects.create(kind="done", **given)

    with pytest.raises(DatabaseError, match=r"timeline_step|UNIQUE"):
        StepRecord.objects.create(kind="begun", **given)


def test_is_of_a_known_kind(chain, now):
    [row] = chain("active")

    with pytest.raises(DatabaseError, match="timeline_step_kind_known"):
        StepRecord.objects.create(
            origin=row.pk, name="a", task_id=row.pk, attempt=1, kind="other", recorded_at=now, seconds=1
        )
