"""A timeline declared in the test, and its row, run again and again."""

from contextlib import ExitStack

import pytest

from tests.engine.invoicing import Journal
from timeline.models import ScheduledTask
from timeline.testing import only_timelines


@pytest.fixture
def journal():
    return Journal()


@pytest.fixture
def declared(order, now, start_at):
    """Have a timeline known, and give its first task's row; a class of the same name takes the place of the one before."""
    with ExitStack() as known:

        def declare(cls, start=True):
            known.close()
            known.enter_context(only_timelines(cls))
            if start:
                start_at("job", order, now)
            return ScheduledTask.objects.get(task_key="job.work") if start else None

        yield declare


@pytest.fixture
def again(run_at, later):
    """Run a row once more, when it is due again."""

    def run_again(row):
        row.refresh_from_db()
        return run_at(row, max(row.scheduled_at, later))

    return run_again
