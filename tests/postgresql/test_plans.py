"""Plans: the hot questions are answered by their indexes at 100,000 rows, half of them final, also with stale statistics."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import product
from uuid import UUID

import pytest
from django.db import connection
from django.db.models import Count
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from project.accounts.models import User
from tests.postgresql.plans import Post, around_tests, plan_of, plans_made_by
from timeline import Timeline, after, task
from timeline.admin import act_on_all
from timeline.dialects import POSTGRESQL, narrowed
from timeline.dispatch.poll import dispatch
from timeline.engine.groups import run
from timeline.features.holds.store import admit, prune_admissions
from timeline.features.maintenance.prune import prune
from timeline.ids import uuid7
from timeline.lifecycle import OPEN, WAITING, Reason, State, Trigger
from timeline.models import EntityRef, Hold, LogEntry, ScheduledTask
from timeline.operations.redrive import redrive
from timeline.operations.start import start
from timeline.reading.diagnosis import diagnose
from timeline.reading.machinery import measure
from timeline.store.task_key_stats import ranges
from timeline.store.transition import Write, advance, as_statement
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
ROWS = 100_000
LISTED = [State.SCHEDULED, State.COMPLETED]
TABLES = "timeline_scheduledtask, timeline_hold, timeline_pace"
KNOWN = f"ANALYZE {TABLES}"

FILL = """
INSERT INTO timeline_scheduledtask (
    id, task_key, occurrence, revision, state, seq, priority, queue, nominal_at, scheduled_at, anchor, definition_hash, payload,
    attempt, failures, lost, max_attempts, worker, error, reason_code, reason, actor, created_at, finished_at,
    lease_expires_at, entity_label, entity_id
)
SELECT gen_random_uuid(), 'trial.remind', number::text, 1, kind.state, 0, 0, 'default', moment, moment, '', '', '{}',
    0, 0, 0, 5, '', '', CASE WHEN kind.state = 'completed' THEN 'done' ELSE '' END, '', '', %(now)s,
    CASE WHEN kind.state = 'completed' THEN moment END,
    CASE WHEN kind.state IN ('pending', 'active') THEN clock_timestamp() + interval '1 hour' END,
    'accounts.user', (number / 10)::text
FROM generate_series(1, %(rows)s) AS number
CROSS JOIN LATERAL (SELECT CASE
    WHEN number %% 2 = 0 THEN 'completed'
    WHEN number %% 100 = 1 THEN 'available'
    WHEN number %% 100 = 3 THEN 'active'
    ELSE 'scheduled'
END AS state) AS kind
CROSS JOIN LATERAL (SELECT %(now)s::timestamptz + (number - 500) * interval '1 minute' AS moment) AS times
"""


LOG = """
INSERT INTO timeline_logentry (task_id, seq, at, from_state, to_state, attempt, actor, reason_code, reason, detail)
SELECT id, 1, %(now)s, 'scheduled', 'available', 0, '', '', '', '{}' FROM timeline_scheduledtask WHERE state = 'completed'
LIMIT 10000
"""


# Tables of which other tests may have told the planner that nothing is in them.
PACES = """
INSERT INTO timeline_pace (task_key, seconds, measured_at)
SELECT 'trial.' || number::text, 0.01, %(now)s FROM generate_series(1, 100) AS number
"""
HOLDS = """
INSERT INTO timeline_hold (
    id, scope, target, names, "then", reason, actor, created_at, lifted_at, released_by, settled, released_at, entity_label,
    entity_id
)
SELECT gen_random_uuid(), 'task', 'trial.remind', '[]', 'run', 'so', '', %(now)s, %(now)s, '', 0, %(now)s, '', ''
FROM generate_series(1, 1000)
"""


@pytest.fixture(scope="module", params=["fresh", "stale"])
def _filled(request, django_db_setup, django_db_blocker):
    """
    A table of that many rows, whose statistics know of them, or know an empty table.

    It takes seconds to fill, so it is filled once, in a transaction around those of the tests.
    """

    def fill(cursor):
        if request.param == "stale":
            cursor.execute(KNOWN)
        cursor.execute(FILL, {"now": NOW, "rows": ROWS})
        for filling in (LOG, PACES, HOLDS):
            cursor.execute(filling, {"now": NOW})
        if request.param == "fresh":
            cursor.execute(KNOWN)

    with around_tests(django_db_blocker, TABLES, fill):
        yield


QUESTIONS = {
    "poll": (lambda: ScheduledTask.objects.to_stage(NOW).locked(skip_locked=True)[:100], "timeline_task_due"),
    # These two by timeline_task_given_up; PostgreSQL 18, which skips through an index, may take timeline_task_kind.
    "on its way": (lambda: ScheduledTask.objects.on_their_way()[:1000].values("pk"), "timeline_task_"),
    "on its way, by queue": (
        lambda: (
            ScheduledTask.objects.filter(state=State.PENDING)
            .order_by()
            .values_list("queue")
            .annotate(number=Count("pk"))
        ),
        "timeline_task_",
    ),
    "waiting ones of a day": (
        lambda: (
            ScheduledTask.objects.filter(state__in=sorted(WAITING))
            .due_between(NOW, NOW + timedelta(days=1))
            .order_by()
            .values("scheduled_at")[:501]
        ),
        "timeline_task_",
    ),
    "listed, active": (lambda: ScheduledTask.objects.first_of([State.ACTIVE], 50), "timeline_task_"),
    "listed, scheduled": (lambda: ScheduledTask.objects.first_of([State.SCHEDULED], 50), "timeline_task_"),
    "listed, completed": (lambda: ScheduledTask.objects.first_of([State.COMPLETED], 50), "timeline_task_ended"),
    "heartbeat": (
        lambda: ScheduledTask.objects.filter(pk__in=[uuid7()], state=State.ACTIVE).by_id().locked(skip_locked=True),
        "Index Scan using timeline_",
    ),
    "overdue, waiting": (lambda: ScheduledTask.objects.late(NOW)[0][:100].values("pk"), "timeline_task_due"),
    "overdue, available": (lambda: ScheduledTask.objects.late(NOW)[1][:100].values("pk"), "timeline_task_"),
    "overdue, claimed": (lambda: ScheduledTask.objects.late(NOW)[2][:100].values("pk"), "timeline_task_"),
    "rescue": (lambda: ScheduledTask.objects.given_up().locked(skip_locked=True)[:100], "timeline_task_given_up"),
    "cancel by entity": (
        lambda: ScheduledTask.objects.open().for_entity(EntityRef("accounts.user", "4711")).by_id().locked(),
        "timeline_task_",
    ),
    "reconcile a run": (
        lambda: ScheduledTask.objects.filter(run__in=[uuid7()]).by_id().locked(),
        "timeline_task_revision",
    ),
    "cancel by run": (
        lambda: ScheduledTask.objects.open().filter(run__in=[uuid7()]).by_id().locked(),
        "timeline_task_",
    ),
    "what an event caused": (
        lambda: ScheduledTask.objects.filter(cause=uuid7(), run__isnull=True),
        "timeline_task_caused",
    ),
    "next revisions": (lambda: ScheduledTask.objects.filter(previous__in=[uuid7()]), "timeline_task_previous"),
    "a log": (lambda: LogEntry.objects.filter(task__in=[uuid7(), uuid7()]).order_by("seq"), "timeline_log_seq"),
    "list of two states": (  # Each state's first, merged.
        lambda: ScheduledTask.objects.filter(state__in=LISTED).first_of(LISTED, 51),
        "Merge Append",
    ),
    "entity's page": (
        lambda: ScheduledTask.objects.for_entity(EntityRef("accounts.user", "4711")).in_order(),
        "timeline_task_",
    ),
}

# What advance finds and locks in the same statement, by which move and by which index; rows are written by their primary key.
STEPS = {
    "due": (
        Trigger.DUE,
        {"most": 1000, "since": NOW - timedelta(days=1), "since_id": UUID(int=0)},
        "timeline_task_due",
    ),
    "shares": (
        Trigger.CLAIM,
        {
            "task_keys": ["trial.expire", "trial.remind"],
            "priorities": [0, 0],
            "sizes": [250, 250],
            "since": [NOW, NOW],
            "since_ids": [UUID(int=0)] * 2,
        },
        "timeline_task_free",
    ),
    "group": (
        Trigger.START,
        {
            "task_key": "trial.remind",
            "priority": 0,
            "most": 100,
            "since": NOW,
            "since_id": UUID(int=0),
            "retried": True,
        },
        "timeline_task_free",
    ),
    "limited": (
        Trigger.START,
        {"limit_keys": ["a", "b"], "task_key": "trial.remind", "places": 2, "each": 1, "attempts": 0},
        "timeline_task_limited",
    ),
    "given": (
        Trigger.START,
        {"ids": [uuid7() for _ in range(100)], "task_keys": ["trial.expire", "trial.remind"], "attempts": 0},
        "timeline_scheduledtask_pkey",
    ),
    "entity": (Trigger.CANCEL, {"label": "testapp.order", "entity": "17", "spared": []}, "timeline_task_entity"),
    "runs": (Trigger.CANCEL, {"runs": [uuid7().hex, uuid7().hex], "spared": []}, "Index Cond: (run_id = ANY"),
}


@pytest.mark.usefixtures("_filled")
class TestPlans:
    def test_use_the_index_of_each_question(self):
        """One table for all questions: it takes seconds to fill."""
        for name, (question, index) in QUESTIONS.items():
            plan = plan_of(*question().query.sql_with_params())

            assert index in plan, f"{name}: {plan}"
            assert "Seq Scan" not in plan, f"{name}: {plan}"

        assert "timeline_task_kind" in plan_of(POSTGRESQL.sql("task_keys_there"), [])

        for name, (trigger, asked, index) in STEPS.items():
            given = {"worker": "w"} if trigger == Trigger.START else {"reason": Reason.operator("")}
            move = partial(advance, name, trigger, **given, **asked, now=NOW, using="default")
            [plan] = plans_made_by(move, guided=False)

            assert index in plan, f"{name}: {plan}"
            assert "timeline_scheduledtask_pkey" in plan, f"{name}: {plan}"
            assert "Seq Scan on timeline_scheduledtask" not in plan, f"{name}: {plan}"
            assert "timeline_hold" not in plan, f"{name}: {plan}"

        for name in ("shares", "group"):
            trigger, asked, index = STEPS[name]
            move = partial(
                advance, name, trigger, worker="w", **asked, parts=frozenset({"on_hold"}), now=NOW, using="default"
            )
            [plan] = plans_made_by(move, guided=False)

            assert index in plan, f"{name}: {plan}"
            assert "hashed SubPlan" in plan, f"{name}: {plan}"

        kinds, asked = POSTGRESQL.sql("ready_kinds"), ranges(["trial.expire", "trial.remind"], {})
        plan = plan_of(narrowed(kinds, ()), asked)

        assert "Index Only Scan using timeline_task_free" in plan, plan
        assert "timeline_hold_open" in plan, plan

        plan = plan_of(narrowed(kinds, ("on_hold",)), asked)

        assert "Index Scan using timeline_task_free" in plan, plan
        assert "hashed SubPlan" in plan, plan  # Who is on hold is read once, not for each row.

        tasks = list(ScheduledTask.objects.filter(state=State.AVAILABLE)[:100])
        writes = [Write(task=task, triggers=(Trigger.START,)) for task in tasks]
        for some, wait in product((writes, writes[:1]), (True, False)):
            made, parameters = as_statement(some, now=NOW, using="default", wait=wait)
            plan = plan_of(made.sql, parameters)

            assert "timeline_scheduledtask_pkey" in plan, plan
            assert "Seq Scan on timeline_scheduledtask" not in plan, plan

    def test_are_told_apart_from_a_bad_one(self):
        """A question that no index answers shows as such: these tests can fail."""
        question = ScheduledTask.objects.filter(actor="ada")

        assert "Seq Scan" in plan_of(*question.query.sql_with_params())


@pytest.mark.usefixtures("_filled")
class TestPolls:
    def test_read_no_table_and_find_each_row_once(self):
        """
        A join filter would mean that each of a thousand rows is looked for among all thousand. Only what changes rows one by
        one, each in its own way, may do so, in memory.
        """
        ScheduledTask.objects.filter(state=State.ACTIVE).update(lease_expires_at=NOW)

        plans = plans_made_by(lambda: dispatch(sender=Post(), now=NOW, using="default"))

        assert ScheduledTask.objects.filter(state=State.PENDING).exists()
        for index in ("timeline_task_due", "timeline_task_free", "timeline_task_given_up"):
            assert any(index in plan for plan in plans), index
        for plan in plans:
            assert "Seq Scan on timeline_scheduledtask" not in plan, plan
            assert "Join Filter" not in plan or "json_to_recordset" in plan, plan

    def test_that_find_nothing_read_the_beginning_of_an_index_each(self):
        ScheduledTask.objects.filter(state=State.AVAILABLE).delete()

        plans = plans_made_by(lambda: dispatch(sender=Post(), now=NOW - timedelta(days=1), using="default"))

        assert [plan.count("Index") > 0 and "Sort" not in plan for plan in plans] == [True] * 2, plans


@pytest.mark.usefixtures("_filled")
class TestDiscardsOfTheDoctor:
    def test_are_found_by_an_index_of_what_has_ended(self):
        ended = {"state": State.DISCARDED, "reason_code": "error", "max_attempts": 5, "task_key": "trial.remind"}
        times = dict.fromkeys(["nominal_at", "scheduled_at", "created_at", "finished_at"], NOW)
        ScheduledTask.objects.bulk_create(
            ScheduledTask(occurrence=f"discarded {number}", **ended, **times) for number in range(1000)
        )

        plans = plans_made_by(lambda: diagnose(now=NOW, using="default"))

        # Which is shorter, the statistics say.
        indexes = "timeline_task_ended", "timeline_task_dead", "timeline_task_failed"
        asked = {plan for plan in plans if any(index in plan for index in indexes)}
        asked |= {plan for plan in plans if "retryable" in plan and "failures" in plan}
        assert len(asked) == 2, plans
        for plan in asked:
            assert "Seq Scan on timeline_scheduledtask" not in plan, plan

    def test_are_told_from_limits_that_are_closed_by_the_index_of_places(self):
        [plan] = plans_made_by(lambda: list(ScheduledTask.objects.closing().values_list("limit_key")))

        assert "timeline_task_slot" in plan, plan


RUNS = """
INSERT INTO timeline_timelinerun (id, timeline, key, params, started_at, ended_at, end_reason, entity_label, entity_id)
SELECT gen_random_uuid(), 'trial', '', '{}', %(now)s, CASE WHEN number %% 2 = 0 THEN %(now)s::timestamptz END,
    CASE WHEN number %% 2 = 0 THEN 'paid' ELSE '' END, 'accounts.user', number::text
FROM generate_series(1, %(rows)s) AS number
"""


@pytest.mark.usefixtures("_filled")
class TestPrune:
    @pytest.fixture(autouse=True)
    def _runs(self, _filled):
        with connection.cursor() as cursor:
            cursor.execute(RUNS, {"now": NOW, "rows": 10_000})

    def test_that_finds_nothing_reads_the_beginning_of_an_index_each(self):
        plans = plans_made_by(lambda: prune(ended_before=NOW - timedelta(days=1), using="default"))

        assert len(plans) == 2, plans
        for plan, index in zip(plans, ("timeline_run_prunable", "timeline_adhoc_ended"), strict=True):
            assert index in plan, plan
            assert "Seq Scan" not in plan, plan

    def test_looks_up_by_its_key_what_a_brake_has_let_in(self):
        let_in = dict.fromkeys(ScheduledTask.objects.values_list("pk", flat=True)[:100], NOW - timedelta(days=30))
        admit("trial.expire", let_in, using="default")

        plans = plans_made_by(lambda: prune_admissions(NOW, most=1000, using="default"))

        assert [("timeline_scheduledtask_pkey" in plan, "Seq Scan" in plan) for plan in plans] == [(True, False)], plans

    @pytest.mark.parametrize("_filled", ["fresh"], indirect=True)
    def test_reads_no_more_tasks_than_it_takes(self):
        """Where PostgreSQL knows the table: of one that was never analyzed it reads all, as long as that is small."""
        plans = plans_made_by(lambda: prune(ended_before=NOW + timedelta(days=10), limit=100, using="default"))

        assert ScheduledTask.objects.count() == ROWS - 100
        for plan in plans:
            assert "Seq Scan on timeline_scheduledtask" not in plan, plan


@pytest.mark.usefixtures("_filled")
class TestRedrive:
    def test_reads_the_revisions_of_what_it_redrives(self):
        """By the indexes that hold them, however many others have the same kind."""
        tasks = ScheduledTask.objects.filter(state=State.COMPLETED)[:20]
        ids = [task.pk for task in tasks]

        plans = plans_made_by(lambda: redrive(task_ids=ids, reason=Reason.operator("again"), now=NOW, using="default"))

        assert any("timeline_adhoc_revision" in plan and "timeline_task_revision" in plan for plan in plans), plans
        for plan in plans:
            assert "Seq Scan on timeline_scheduledtask" not in plan, plan


EXITS = """
INSERT INTO timeline_event (id, entity_label, entity_id, name, key, payload, actor, occurred_at, recorded_at)
SELECT gen_random_uuid(), 'testapp.order', %(entity)s, 'order.closed', '', '{}', '', %(now)s,
    %(now)s::timestamptz - number * interval '1 minute'
FROM generate_series(1, %(rows)s) AS number
"""


@pytest.mark.usefixtures("_filled")
class TestAllThatMatch:
    def test_shows_the_first_of_each_state_by_the_index_of_times(self, client, monkeypatch):
        """It counts all, but shows a few: joined to their runs before they are cut, all would be read and sorted."""
        monkeypatch.setattr(act_on_all, "uuid7", lambda: UUID(int=2**128 - 1))  # All were made before the page.
        with connection.cursor() as cursor:
            cursor.execute(KNOWN)
        staff = {"is_staff": True, "is_superuser": True, "signed_up_at": NOW, "trial_ends_at": NOW}
        client.force_login(User.objects.create(email="ada@example.com", **staff))
        page = reverse("admin:timeline_scheduledtask_matching")

        plans = plans_made_by(lambda: client.get(f"{page}?state=all&action=cancel"))

        shown = [plan for plan in plans if plan.startswith("Limit")]
        assert [plan.count("Index Scan using") for plan in shown] == [len(OPEN)]
        assert "timelinerun" not in " ".join(plans)


class Trial(Timeline):
    """That of most of the rows."""

    entity = "accounts.User"

    @task()
    def remind(self, user) -> None: ...

    @task()
    def end(self, user) -> None: ...


@pytest.mark.usefixtures("_filled")
class TestMeasure:
    """A scrape."""

    @pytest.mark.parametrize("scope", ["", "task", "entity"])
    @pytest.mark.parametrize("now", [NOW, NOW + timedelta(days=900)], ids=["few are due", "all are due"])
    def test_is_answered_by_indexes(self, scope, now):
        """Not by a walk through the table until so many are found: there may be very many before them."""
        if scope:
            refs = {"entity_label": "accounts.user", "entity_id": "7"} if scope == "entity" else {"target": "trial.end"}
            Hold.objects.create(scope=scope, reason="so", created_at=NOW, names=[["accounts.user", "7"]], **refs)

        with only_timelines(Trial):
            plans = plans_made_by(lambda: measure(now=now, using="default"))

        assert len(plans) == 2
        for plan in plans:
            assert "Seq Scan on timeline_scheduledtask" not in plan, plan
            assert "Seq Scan on timeline_logentry" not in plan, plan


class Closing(Timeline):
    """Ended by what happens to an order many times a day."""

    entity = "testapp.Order"
    exits = {"order.closed": "closed"}

    @task(after(days=1))
    def work(self, order):
        return None


class TestExitsOfTheLastLook:
    @pytest.mark.parametrize("statistics", ["fresh", "stale"])
    def test_are_found_by_the_index_since_the_start_only(self, order, statistics):
        """However many there were before the run began."""
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE timeline_event")
            cursor.execute(EXITS, {"entity": str(order.pk), "now": NOW, "rows": ROWS // 2})
            if statistics == "fresh":
                cursor.execute("ANALYZE timeline_event")

        with only_timelines(Closing), CaptureQueriesContext(connection) as queries:
            given = {"key": "", "params": {}, "started_at": NOW - timedelta(days=900), "using": "default"}
            row = start(timeline="closing", entity=order, now=NOW, **given).run.tasks.get()
            run(task_ids=[row.pk], clock=lambda: NOW + timedelta(days=1), using="default")

        [asked] = [query["sql"] for query in queries if 'FROM "timeline_event"' in query["sql"]]
        plan = plan_of(asked.replace("%", "%%"), None)
        assert "timeline_event_recorded" in plan
        assert re.search(r"Index Cond: .*recorded_at >= ", plan)
        row.refresh_from_db()
        assert row.state == State.COMPLETED
