"""Row-level security: who does not see an entity does not take it for deleted. how-to/tenants.md has the same statements."""

from __future__ import annotations

import os

import pytest
from django.db import connection

from tests.testapp.models import Order
from timeline import Timeline, after, task
from timeline.checks import check_tenants
from timeline.features.sweep.verbs import begin_round, sweep
from timeline.lifecycle import State
from timeline.models import ScheduledTask, TimelineRun
from timeline.shortcuts import start
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

WEB, WORKERS = (f"{name}_{os.getpid()}" for name in ("web", "workers"))  # Roles are the whole server's.
SEEN_AS = []


class Reminders(Timeline):
    entity = "testapp.Order"

    @task(after(days=1))
    def remind(self, order):
        say("SELECT set_config('role', %s, true), set_config('app.tenant', %s, true)", WEB, order.note)
        SEEN_AS.append(sorted(Order.objects.values_list("note", flat=True)))
        say("SELECT set_config('role', %s, true)", WORKERS)


def say(statement, *given):
    with connection.cursor() as cursor:
        cursor.execute(statement, given or None)


@pytest.fixture
def _tenants(clock, now):
    """Orders of two tenants, told apart by their notes, each with a run; roles of the site and of its workers."""
    clock.set(now)
    SEEN_AS.clear()
    say(f"CREATE ROLE {WEB}")
    say(f"CREATE ROLE {WORKERS} BYPASSRLS")
    say(f"GRANT {WEB} TO {WORKERS}")
    for role in (WEB, WORKERS):
        say(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}")
        say(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {role}")
    say("ALTER TABLE testapp_order ENABLE ROW LEVEL SECURITY")
    say("CREATE POLICY tenant ON testapp_order USING (note = current_setting('app.tenant', true))")
    try:
        with only_timelines(Reminders):
            for note in ("acme", "umbrella"):
                start("reminders", Order.objects.create(note=note))
            yield
    finally:
        say("RESET ROLE")
        say("DROP POLICY tenant ON testapp_order")
        say("ALTER TABLE testapp_order DISABLE ROW LEVEL SECURITY")
        for role in (WEB, WORKERS):
            say(f"DROP OWNED BY {role}")
        say(f"DROP ROLE {WEB}, {WORKERS}")


@pytest.mark.usefixtures("_tenants")
class TestAWorkerThatIsSubjectToAPolicy:
    @pytest.fixture(autouse=True, params=["", "acme"], ids=["no tenant", "one tenant"])
    def _subject(self, request, _tenants):
        say(f"SET ROLE {WEB}")
        say("SELECT set_config('app.tenant', %s, false)", request.param)

    def test_ends_nothing_at_the_due_time(self, clock):
        clock.advance(days=2)

        assert not TimelineRun.objects.filter(end_code="entity_gone").exists()
        assert not ScheduledTask.objects.filter(reason_code="entity_gone").exists()
        assert ScheduledTask.objects.filter(state=State.RETRYABLE, reason_code="definition").exists()

    def test_ends_nothing_in_a_sweep(self, now, caplog):
        begin_round(using="default")
        while sweep(now=now, using="default").left:
            pass

        assert TimelineRun.objects.open().count() == 2
        assert "row-level security hides rows of testapp_order" in caplog.text

    def test_is_warned(self):
        [warning] = check_tenants(None, databases=["default"])

        assert warning.id == "timeline.W014"
        assert "testapp.Order" in warning.msg


@pytest.mark.usefixtures("_tenants")
class TestAWorkerThatSeesAllRows:
    def test_runs_the_tasks_of_each_tenant_as_that_tenant(self, clock):
        say(f"SET ROLE {WORKERS}")

        clock.advance(days=2)

        assert sorted(SEEN_AS) == [["acme"], ["umbrella"]]
        assert list(ScheduledTask.objects.values_list("state", flat=True)) == [State.COMPLETED] * 2

    def test_is_not_warned(self):
        say(f"SET ROLE {WORKERS}")

        assert check_tenants(None, databases=["default"]) == []

    def test_ends_what_was_deleted(self, clock):
        say(f"SET ROLE {WORKERS}")
        Order.objects.filter(note="acme")._raw_delete("default")

        clock.advance(days=2)

        assert set(ScheduledTask.objects.values_list("state", "reason_code")) == {
            (State.CANCELLED, "entity_gone"),
            (State.COMPLETED, "done"),
        }
