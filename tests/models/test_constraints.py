"""What the database refuses where a row names another: what is not there, and that what is named goes."""

from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction

from tests.databases import VENDOR
from timeline.models import ScheduledTask


def delete(row):
    """Delete it past Django, which would look for what names it."""
    type(row).objects.filter(pk=row.pk)._raw_delete("default")
    connection.check_constraints()  # SQLite's keys wait for the commit.


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
