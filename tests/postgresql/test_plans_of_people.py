"""What waits for people is found by indexes, however many tasks wait for something else, and however many for people."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection

from tests.postgresql.owned import reads_of
from tests.postgresql.plans import around_tests
from tests.rows import make_task
from timeline import Machine, Timeline, approval, on, task
from timeline.features.machines.people import SHOWN, Place, waiting_for_people
from timeline.lifecycle import ReasonCode, State
from timeline.models import ScheduledTask, TimelineRun
from timeline.testing import only_timelines

pytestmark = [pytest.mark.only_postgresql, pytest.mark.django_db, pytest.mark.usefixtures("_many")]

TABLES = {"timeline_scheduledtask"}
MANY = 4_000
WITHIN = timedelta(days=400)
DAY = timedelta(days=1)


class Refunding(Timeline):
    entity = "testapp.Order"
    starts_on = "refund.asked"

    @task(approval("refund", by="testapp.change_order", within=WITHIN))
    def refund(self, order): ...


class Parcel(Machine):
    """Its timer may be there while it asks, and while it does not."""

    entity = "testapp.Order"
    starts_on = "parcel.sent"
    initial = "held"
    table = {
        "held": {"parcel.freed": "kept", "parcel.late": "gone"},
        "kept": {"parcel.late": "gone", "parcel.taken": "gone"},
        "gone": {},
    }
    timers = {"parcel.late": on("held", "kept", hours=4)}
    asks = {"parcel.freed": "testapp.change_order"}


class Ticket(Machine):
    """Its timer is there only while it asks."""

    entity = "testapp.Order"
    starts_on = "ticket.made"
    initial = "held"
    table = {"held": {"ticket.closed": "gone", "ticket.late": "gone"}, "gone": {}}
    timers = {"ticket.late": on("held", hours=4)}
    asks = {"ticket.closed": "testapp.change_order"}


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


def machines(known, states, now):
    """Very many runs in these states, those that ask last; but for a few, each with a timer."""
    runs, timed = [], []
    for number in range(MANY):
        for state in states:
            at = now + timedelta(seconds=number) + (DAY if state == "held" else timedelta())
            about = {"timeline": known.name, "entity_label": "testapp.order", "entity_id": f"{state} {number}"}
            runs.append(TimelineRun(**about, state=state, state_at=at, started_at=at, recorded_at=at))
            if state != "held" or number % 400:
                timed.append((runs[-1], at))
    TimelineRun.objects.bulk_create(runs)
    [key] = [known.task_key(name) for name in known.tasks]
    base = make_task(task_key=key, entity_label="testapp.order", entity_id="1")
    columns = [field.attname for field in ScheduledTask._meta.concrete_fields if not field.primary_key]
    values = {name: getattr(base, name) for name in columns}
    base.delete()
    ScheduledTask.objects.bulk_create(
        ScheduledTask(**values | {"run_id": run.pk, "entity_id": run.entity_id, "scheduled_at": at, "nominal_at": at})
        for run, at in timed
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE timeline_scheduledtask, timeline_timelinerun")


@pytest.mark.parametrize(("machine", "states", "most"), [(Ticket, ["held"], 300), (Parcel, ["kept", "held"], 4 * MANY)])
def test_reads_few_timers_of_very_many_runs_wherever_it_begins(machine, states, most):
    now = now_of_rows()
    machines(machine.definition, states, now)
    asking = ScheduledTask.objects.filter(run__state="held").order_by("scheduled_at", "run_id")
    middle, last = asking[MANY // 2], asking.last()

    def listed(after=None):
        with only_timelines(machine):
            return waiting_for_people(may_say=lambda run: [], tasks=ScheduledTask.objects.all(), after=after, now=now)

    for after in (None, Place(False, middle.scheduled_at, middle.run_id)):
        reads = reads_of(lambda after=after: listed(after), {*TABLES, "timeline_timelinerun"})

        assert len(listed(after).waiting) == SHOWN
        assert max(read for read, _sql in reads) <= most, after
    rest = listed(Place(False, last.scheduled_at, last.run_id))
    assert [each.due_at for each in rest.waiting] == [None] * (MANY // 400)


def test_finds_the_timers_of_a_kind_by_its_index_also_where_most_tasks_are_of_it():
    """Else all that is due before would be read: the index of states has the same order."""
    now = now_of_rows()
    base = make_task(task_key="ticket.timer:ticket.late", entity_label="testapp.order", entity_id="1")
    first = TimelineRun.objects.create(
        timeline="ticket", entity_label="testapp.order", entity_id="0", state="held", state_at=now, started_at=now
    )
    base.run = first
    base.nominal_at = base.scheduled_at = now + timedelta(days=20)
    base.save(update_fields=["run", "nominal_at", "scheduled_at"])
    runs, tasks = ([field.column for field in model._meta.concrete_fields] for model in (TimelineRun, ScheduledTask))
    changed = {"id": "made.id", "entity_id": "made.number::text"}
    of_runs = ", ".join(changed.get(name, f'kind."{name}"') for name in runs)
    later = "kind.scheduled_at + made.number * interval '1 second'"
    changed = {"id": "gen_random_uuid()", "run_id": "made.id", "entity_id": "made.number::text", "scheduled_at": later}
    of_tasks = ", ".join(changed.get(name, f'kind."{name}"') for name in tasks)
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TEMPORARY TABLE made ON COMMIT DROP AS SELECT number, gen_random_uuid() AS id"
            " FROM generate_series(1, 60000) AS number"
        )
        for model, names, values, key in (
            (TimelineRun, runs, of_runs, first.pk),
            (ScheduledTask, tasks, of_tasks, base.pk),
        ):
            table = model._meta.db_table
            columns = ", ".join(f'"{name}"' for name in names)
            rows = f"SELECT {values} FROM {table} AS kind, made WHERE kind.id = %s"  # noqa: S608 (names of columns)
            cursor.execute(f"INSERT INTO {table} ({columns}) {rows}", [key])
        cursor.execute("ANALYZE timeline_scheduledtask, timeline_timelinerun")

    def listed():
        with only_timelines(Ticket):
            return waiting_for_people(may_say=lambda run: [], tasks=ScheduledTask.objects.all(), now=now)

    reads = reads_of(listed, {*TABLES, "timeline_timelinerun"})

    assert len(listed().waiting) == SHOWN
    assert max(read for read, _sql in reads) <= 10 * SHOWN
