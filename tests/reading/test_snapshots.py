"""Who holds an old snapshot: the doctor and the page of health name it, and nobody else reads its query."""

from __future__ import annotations

import json
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from io import StringIO

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection
from django.urls import reverse

from project.accounts.models import User
from timeline.models import ScheduledTask
from timeline.reading import diagnosis
from timeline.reading.diagnosis import OldSnapshot, diagnose, old_snapshot
from timeline.store.site import sign_of_poller

QUERY = "SELECT 'Ada Lovelace', count(*) FROM timeline_scheduledtask"
HELD = OldSnapshot(
    kind="session",
    name="reporter",
    pid=4711,
    since=datetime(2026, 3, 1, 9, 0, tzinfo=UTC),
    asked_at=None,
    state="idle in transaction",
    dead_rows=369_500,
    query=QUERY,
)


@pytest.fixture
def _soon(monkeypatch):
    """Let any transaction count as long, and any dead row as many."""
    monkeypatch.setattr(diagnosis, "LONG", timedelta(0))
    monkeypatch.setattr(diagnosis, "MANY", 0)
    monkeypatch.setattr(diagnosis, "TRANSACTIONS", 0)


@pytest.fixture
def reporter(db):
    """A session that looks at the database as it was, and does nothing more: its process."""
    given = {name: value for name, value in connection.get_connection_params().items() if name in NAMES}
    with closing(psycopg.connect(**given)) as session:
        session.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        session.execute(f"{QUERY} -- {'x' * 200}")
        process = session.info.backend_pid
        yield process
    with psycopg.connect(**given, autocommit=True) as other:  # The server takes a moment to end what was closed.
        while other.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", [process]).fetchone():
            time.sleep(0.01)


NAMES = ("dbname", "user", "password", "host", "port")


class TestTold:
    def test_names_the_session_and_what_it_costs(self):
        assert HELD.told == (
            "Session 4711 of reporter is in a transaction since 2026-03-01 09:00 UTC, so PostgreSQL keeps 369,500 dead rows of "
            "tasks, and polls slow down. End it, or let it read from a replica."
        )

    @pytest.mark.parametrize(
        ("changed", "begins"),
        [
            ({"since": None}, "Session 4711 of reporter holds an old snapshot"),
            ({"kind": "prepared", "pid": None}, "A transaction that reporter prepared at 2026-03-01 09:00 UTC"),
            ({"kind": "slot", "pid": None, "since": None}, "The replication slot reporter holds an old snapshot"),
        ],
        ids=["not known since when", "prepared", "slot"],
    )
    def test_says_of_each_kind_what_to_do(self, changed, begins):
        told = OldSnapshot(**{name: getattr(HELD, name) for name in OldSnapshot.__slots__} | changed).told

        assert told.startswith(begins)
        assert "Ada" not in told


@pytest.mark.only_postgresql
class TestOldSnapshot:
    @pytest.mark.usefixtures("_soon")
    def test_names_the_session_that_holds_it(self, reporter):
        found = old_snapshot(using="default")

        assert (found.kind, found.pid, found.state) == ("session", reporter, "idle in transaction")
        assert found.name == connection.settings_dict["USER"]
        assert found.since <= found.asked_at
        assert found.query.startswith(QUERY)
        assert len(found.query) <= 80

    @pytest.mark.usefixtures("_soon", "db")
    def test_is_none_where_nobody_holds_one(self):
        """The session that asks does not count."""
        ScheduledTask.objects.exists()

        assert old_snapshot(using="default") is None

    @pytest.mark.parametrize(("name", "value"), [("LONG", timedelta(hours=1)), ("MANY", 10**9)])
    @pytest.mark.usefixtures("_soon", "reporter")
    def test_is_none_before_it_costs_something(self, monkeypatch, name, value):
        monkeypatch.setattr(diagnosis, name, value)

        assert old_snapshot(using="default") is None

    @pytest.mark.usefixtures("_soon")
    def test_says_what_it_can_to_a_role_that_may_not_read_the_statistics_of_others(self, reporter):
        with connection.cursor() as cursor:
            cursor.execute("CREATE ROLE timeline_small; GRANT ALL ON ALL TABLES IN SCHEMA public TO timeline_small")
            cursor.execute("SET LOCAL ROLE timeline_small")

        found = old_snapshot(using="default")

        assert (found.kind, found.pid, found.since, found.state) == ("session", reporter, None, "")
        assert "Ada" not in found.query

    @pytest.mark.usefixtures("_soon", "reporter", "db")
    def test_reads_no_sessions_where_few_rows_are_dead(self, monkeypatch):
        monkeypatch.setattr(diagnosis, "MANY", 10**9)
        begun = time.monotonic()

        old_snapshot(using="default")

        assert time.monotonic() - begun < 5


@pytest.mark.only_postgresql
@pytest.mark.usefixtures("_soon")
class TestWhoIsTold:
    def test_is_the_doctor_with_the_query_but_not_in_its_data(self, reporter):
        sign_of_poller(using="default")
        said, data = StringIO(), StringIO()

        for out, options in ((said, {}), (data, {"json": True})):
            with pytest.raises(SystemExit):
                call_command("timeline_doctor", database="default", stdout=out, **options)

        assert f"Session {reporter} of " in said.getvalue()
        assert "Ada Lovelace" in said.getvalue()
        [told] = json.loads(data.getvalue())
        assert (told["snapshot"]["pid"], "query" in told["snapshot"]) == (reporter, False)
        assert "Ada" not in data.getvalue()

    def test_is_the_page_of_health_with_the_query(self, reporter, client, now):
        staff = User.objects.create(
            email="ada@example.com", is_staff=True, is_superuser=True, signed_up_at=now, trial_ends_at=now
        )
        client.force_login(staff)

        page = client.get(reverse("admin:timeline_scheduledtask_health")).content.decode()

        assert f"Session {reporter} of " in page
        assert "Ada Lovelace" in page

    @pytest.mark.django_db(databases=["default", "other"])
    def test_is_who_asks_for_the_figures_without_the_query(self, reporter, client, now):
        staff = User.objects.create(
            email="ada@example.com", is_staff=True, is_superuser=True, signed_up_at=now, trial_ends_at=now
        )
        client.force_login(staff)

        answer = client.get(reverse("health")).json()

        assert answer["databases"][0]["snapshot"]["pid"] == reporter
        assert "Ada" not in json.dumps(answer)

    def test_does_not_say_that_due_tasks_are_not_run(self, reporter, now):
        sign_of_poller(using="default")

        found = diagnose(now=now, using="default")

        assert (found.working, found.well) == (True, False)
