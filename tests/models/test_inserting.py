"""Insert what is missing, and be told what was."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from timeline.models import Event, ScheduledTask
from timeline.models.inserting import insert_missing

pytestmark = pytest.mark.django_db


@pytest.fixture
def seen(now):
    """Make an event, not saved."""
    return lambda key, **columns: Event(name="order.seen", key=key, occurred_at=now, recorded_at=now, **columns)


def insert(*rows):
    return insert_missing(rows, using="default")


class TestInsertMissing:
    def test_inserts_in_the_order_given(self, seen):
        rows = [seen("b", payload={"at": [1, "ü"]}), seen("a")]

        inserted = insert(*rows)

        assert inserted == rows
        assert [Event.objects.get(pk=row.pk).payload for row in inserted] == [{"at": [1, "ü"]}, {}]
        assert [(row._state.adding, row._state.db) for row in inserted] == [(False, "default")] * 2

    def test_leaves_out_what_is_there_and_says_so(self, seen):
        insert(seen("a"))
        again, new = seen("a"), seen("b")

        with transaction.atomic():
            assert insert(again, new) == [new]

        assert Event.objects.count() == 2
        assert again._state.adding

    def test_leaves_out_the_second_of_the_same(self, seen):
        first, second = seen("a"), seen("a")

        assert insert(first, second) == [first]

    def test_inserts_nothing_of_nothing(self, django_assert_num_queries):
        with django_assert_num_queries(0):
            assert insert() == []

    def test_takes_more_rows_than_a_statement_has_parameters(self, seen):
        rows = [seen(str(number)) for number in range(1500)]

        assert insert(*rows) == rows
        assert Event.objects.count() == 1500

    def test_refuses_what_a_check_refuses(self, make_task):
        """Only a taken place is passed over; a row that is wrong is an error."""
        task = make_task()
        wrong = ScheduledTask(task_key="trial.remind", state="lost", nominal_at=task.nominal_at, max_attempts=5)
        wrong.scheduled_at = wrong.created_at = task.nominal_at

        with pytest.raises(IntegrityError), transaction.atomic():
            insert(wrong)
