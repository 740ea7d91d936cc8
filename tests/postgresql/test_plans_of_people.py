"""What waits for people is found by indexes, however many tasks wait for something else, and however many for people."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.postgresql.owned import reads_of
from tests.postgresql.plans import around_tests
from tests.rows import make_task
from timeline import Timeline, approval, task
from timeline.features.machines.people import SHOWN, Place, waiting_for_people
from timeline.lifecycle import ReasonCode, State
from timeline.models import ScheduledTask, TimelineRun
from timeline.testing import only_timelines

pytestmark = [pytest.mark.only_postgresql, pytest.mark.django_db, pytest.mark.usefixtures("_many")]

TABLES = {"timeline_scheduledtask"}
WITHIN = timedelta(days=400)
DAY = timedelta(days=1)


class Refunding(Timeline):
    entity = "testapp.Order"
    starts_on = "refund.asked"

    @task(approval("refund", by="testapp.change_order", within=WITHIN))
    def refund(self, order): ...


class Lending(Timeline):
    entity = "testapp.Order"
    starts_on = "loan.asked"

    @task(approval("loan", by="testapp.change_order", within=WITHIN))
    def lend(self, order): ...


@pytest.fixture(scope="module")
def _many(django_db_setup, django_db_blocker):
    """A hundred thousand tasks that wait: most for a time, ten thousand for approval, and five thousand rest; filled once."""
    with around_tests(django_db_blocker, "timeline_timelinerun, timeline_scheduledtask", fill):
        yield


def fill(cursor):
    columns = [column.column for column in ScheduledTask._meta.concrete_fields]
    names = ", ".join(f'"{name}"' for name in columns)
    due = {"scheduled_at": "kind.scheduled_at + number * interval '1 second'"}
    due["nominal_at"] = due["scheduled_at"]
    others = {"id": "gen_random_uuid()", "occurrence": "'other ' || kind.state || number", **due}
    values = ", ".join(others.get(name, f'kind."{name}"') for name in columns)
    now = make_task(task_key="other.task").scheduled_at
    run = TimelineRun.objects.create(timeline="refunding", entity_label="testapp.order", entity_id="1", started_at=now)
    for key, name in (("refunding.refund", "refund"), ("lending.lend", "loan")):
        made = make_task(run=run, task_key=key, awaits=f"{name}.approved {name}.rejected", nominal_at=now + DAY)
        assert made.state == State.SCHEDULED
    make_task(task_key="other.rests", state=State.RETRYABLE, reason_code=ReasonCode.IN_DOUBT, scheduled_at=now + DAY)
    cursor.execute(
        f"INSERT INTO timeline_scheduledtask ({names}) SELECT {values} FROM timeline_scheduledtask AS kind,"  # noqa: S608
        " generate_series(1, 90000) AS number WHERE kind.task_key = 'other.task' OR number <= 5000"
    )
    cursor.execute("ANALYZE timeline_scheduledtask")


def page(now, after=None):
    with only_timelines(Refunding, Lending):
        return waiting_for_people(may_say=lambda run: [], tasks=ScheduledTask.objects.all(), after=after, now=now)


def now_of_rows():
    return ScheduledTask.objects.filter(task_key="other.task").earliest("scheduled_at").scheduled_at


def test_reads_a_page_and_no_more_wherever_it_begins():
    now = now_of_rows()
    found, place = page(now)
    middle = ScheduledTask.objects.filter(task_key="lending.lend").order_by("scheduled_at")[3000]
    for after in (None, place, Place(False, middle.scheduled_at, middle.pk)):
        reads = reads_of(lambda after=after: page(now, after), TABLES)

        assert len(found) == SHOWN
        assert max(read for read, _sql in reads) <= 5 * SHOWN, after
