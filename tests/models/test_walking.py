"""The first of many tasks on SQLite: which index is walked, and what is found by its key and sorted."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection

from tests.conftest import NOW
from tests.testapp.models import Plan
from timeline.lifecycle import FINAL, OPEN, State
from timeline.models import EntityRef, ScheduledTask, first_rows
from timeline.models.kin import naming_one_of

# PostgreSQL reads each state's first apart, by limits: see tests/postgresql/test_plans.py.

ALL = sorted(State)
DAY = timedelta(days=1)


def by(name, *columns):
    """A part of a plan that looks for something in an index, and is handed it in order of time."""
    return f"SEARCH timeline_scheduledtask USING INDEX {name} ({' AND '.join(columns)})"


TIMES = ("scheduled_at>?", "scheduled_at<?")
WALKED = {by("timeline_task_open", "state=?", *TIMES), by("timeline_task_ended", "state=?", *TIMES)}
OF_TASK = by("timeline_task_kind", "task_key=?", "state=?", *TIMES)
SORTED = "USE TEMP B-TREE FOR ORDER BY"


def plan_of(tasks):
    """Each line of the statement's plan that says how tasks are found or put in order."""
    lines = (re.sub(r"^[\d ]+", "", line) for line in tasks.explain().splitlines())
    return [line for line in lines if "timeline_scheduledtask" in line or "ORDER BY" in line]


@pytest.fixture(params=["no statistics", "statistics"])
def tasks(request, make_tasks, user, now):
    """Tasks of each state, of plans, on different days; with or without the statistics that ``ANALYZE`` makes."""
    plans = [Plan.objects.create(user=user) for _ in range(3)]
    make_tasks(
        {
            "task_key": f"plans.{number % 2}",
            "state": state,
            "scheduled_at": now + number % 7 * DAY,
            "nominal_at": now + number % 7 * DAY,
            "entity_label": "testapp.plan",
            "entity_id": str(plans[number % 3].pk),
        }
        for number, state in enumerate(ALL * 9)
    )
    if request.param == "statistics":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
    return ScheduledTask.objects.all()


@pytest.fixture
def owned():
    """Narrow tasks down to what is looked up row by row, beside what is named."""
    own = ScheduledTask.objects.filter(entity_label="accounts.user", entity_id__in=["17"])
    return own | ScheduledTask.objects.filter(naming_one_of(Plan.objects.all()), task_key__startswith="plans.")


@pytest.mark.only_sqlite
class TestWalked:
    @pytest.mark.parametrize("latest", [False, True])
    @pytest.mark.parametrize("states", [ALL, sorted(OPEN), ["completed", "scheduled"]])
    @pytest.mark.usefixtures("tasks")
    def test_is_an_index_of_states_for_what_is_looked_up_row_by_row(self, owned, states, latest):
        """One part for each state, none of which sorts."""
        plan = plan_of(owned.first_of(states, 51, latest=latest))

        assert len(plan) == len(states)
        assert set(plan) <= WALKED

    @pytest.mark.parametrize("state", ALL)
    @pytest.mark.usefixtures("tasks")
    def test_is_its_half_for_one_state(self, owned, state):
        [found] = plan_of(owned.first_of([state], 51))

        assert ("timeline_task_open" if state in OPEN else "timeline_task_ended") in found
        assert found in WALKED

    def test_is_an_index_of_states_for_all_tasks(self, tasks):
        """Staff see them all."""
        assert set(plan_of(tasks.first_of(FINAL, 51))) <= WALKED

    def test_begins_where_the_page_does(self, tasks, now):
        """Of two bounds, the one that leaves less is what the index begins with: the first that SQLite reads."""
        first_of_two = (
            tasks.due_between(now, now + 9 * DAY).filter(scheduled_at__gte=now + DAY).first_of(["active"], 51)
        )

        _sql, parameters = first_of_two.query.sql_with_params()

        assert str(parameters[0]).startswith(str((now + DAY).replace(tzinfo=None)))

    def test_is_the_index_of_its_kind_for_a_task(self, tasks):
        """Only the key, which breaks ties, is sorted by: among what is due at the same moment."""
        plan = plan_of(tasks.with_handler(["plans.1"]).first_of(ALL, 51))

        assert plan.count(OF_TASK) == len(ALL)
        assert SORTED not in plan

    def test_is_an_index_of_states_for_a_timeline_of_many(self, tasks, monkeypatch):
        """Of so small a table, SQLite may sort what it finds there all the same."""
        monkeypatch.setattr(first_rows, "FEW", 20)

        plan = plan_of(tasks.of_timeline("plans").first_of(ALL, 51))

        found = [line for line in plan if line.startswith("SEARCH")]
        assert len(found) == len(ALL)
        assert all("timeline_task_open (state=?" in line or "timeline_task_ended (state=?" in line for line in found)


@pytest.mark.only_sqlite
class TestSorted:
    def test_is_a_timeline_of_few(self, tasks, monkeypatch):
        """Their keys are read before, in one statement."""
        monkeypatch.setattr(first_rows, "FEW", 72)

        plan = plan_of(tasks.of_timeline("plans").first_of(ALL, 51))

        assert plan[0].endswith("sqlite_autoindex_timeline_scheduledtask_1 (id=?)")

    def test_is_a_timeline_of_none(self, tasks, django_assert_num_queries):
        """Another one's name that begins with its own does not count. One statement tells, and walks nothing."""
        with django_assert_num_queries(1):
            assert list(tasks.of_timeline("plan").first_of(ALL, 51)) == []

    @pytest.mark.parametrize(
        "named",
        [
            lambda tasks: tasks.for_entity(EntityRef("testapp.plan", "1")),
            lambda tasks: tasks.filter(entity_label="testapp.plan", entity_id__in=["1", "2"]).of_timeline("plans"),
            lambda tasks: tasks.for_entity(EntityRef("testapp.plan", "1")) | tasks.for_entity(EntityRef("a.b", "2")),
        ],
    )
    def test_is_what_is_named(self, tasks, named):
        plan = plan_of(named(tasks).first_of(ALL, 51))

        assert not set(plan) & WALKED
        assert "(entity_label=? AND entity_id=?" in plan[0]

    def test_is_not_what_only_one_of_two_conditions_names(self, tasks):
        either = tasks.for_entity(EntityRef("testapp.plan", "1")) | tasks.filter(actor="ada")

        assert set(plan_of(either.first_of(ALL, 51))) <= WALKED

    def test_is_not_what_is_left_when_some_are_named(self, tasks):
        others = tasks.exclude(entity_id="1")

        assert set(plan_of(others.first_of(ALL, 51))) <= WALKED

    def test_would_be_what_repeats_no_condition(self, tasks):
        """So a statement shows that sorts: the tests above can fail."""
        assert "ORDER BY" in plan_of(tasks.filter(state__in=ALL).in_order()[:51])[-1]


class TestInStates:
    """However the first are found, they are those that sorting all would begin with; on PostgreSQL too."""

    @pytest.mark.parametrize("latest", [False, True])
    @pytest.mark.parametrize(
        "narrow",
        [
            lambda tasks: tasks,
            lambda tasks: tasks.with_handler(["plans.1"]),
            lambda tasks: tasks.with_handler(["plans.0", "plans.1"]),
            lambda tasks: tasks.of_timeline("plans"),
            lambda tasks: tasks.about("testapp.plan"),
            lambda tasks: tasks.for_entity(EntityRef("testapp.plan", "1")) | tasks.filter(task_key="plans.1"),
            lambda tasks: tasks.filter(task_key="plans.0") | tasks.of_timeline("none"),
            lambda tasks: tasks.filter(scheduled_at__gt=NOW + DAY).due_between(NOW, NOW + 3 * DAY),
            lambda tasks: tasks.filter(scheduled_at__lte=NOW + 2 * DAY) | tasks.filter(task_key="plans.0"),
            lambda tasks: tasks.exclude(task_key="plans.0"),
            pytest.param(lambda tasks: tasks.none(), marks=pytest.mark.only_sqlite),
        ],
    )
    def test_finds_the_first(self, tasks, narrow, latest):
        for states in (ALL, ["completed"], ["completed", "scheduled"], []):
            rows = [task for task in narrow(tasks) if task.state in states]
            rows.sort(key=lambda task: (task.scheduled_at, task.pk), reverse=latest)

            assert list(narrow(tasks).first_of(states, 11, latest=latest)) == rows[:11]
