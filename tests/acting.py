"""What tests of verbs, attempts and polls share: short ways to say what the case is not about."""

import itertools
import re
from contextlib import ExitStack
from datetime import timedelta
from inspect import iscoroutinefunction
from types import new_class

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.testapp.models import Order
from timeline import Timeline, after, task
from timeline.engine.groups import run
from timeline.models import Event, ScheduledTask, TimelineRun
from timeline.operations.emit import emit
from timeline.operations.schedule import schedule
from timeline.operations.start import start, start_many
from timeline.registry import registry
from timeline.shortcuts._named import batches_of
from timeline.testing import only_timelines
from timeline.timing import EARLIEST


def nothing_is_written():
    """Neither an event nor what it would start."""
    return not (Event.objects.exists() or TimelineRun.objects.exists() or ScheduledTask.objects.exists())


@pytest.fixture
def work(order, now, start_at):
    """Have one task, ``job.work``, due a day after the start of its run: ``work(handler, …)`` gives its row."""
    known = []

    def declare(handler=lambda job, order: None, when=None, declared=None, in_shadow=False, **options):
        class Job(Timeline):
            entity = "testapp.Order"
            exits = {"order.closed": "closed"}
            time_zone = "zone"
            language = "language"
            shadow = in_shadow

            @task(when or after(days=1), **options)
            def work(self, order):
                return handler(self, order)

            @task(after(work, days=2))
            def follow(self, order):
                return None

            @task()
            def ad_hoc(self, order):
                return handler(self, order)

        for name, value in (declared or {}).items():
            setattr(Job, name, value)
        context = only_timelines(Job)
        context.__enter__()
        known.append(context)
        start_at("job", order, now)
        return ScheduledTask.objects.get(task_key="job.work")

    yield declare
    for context in reversed(known):
        context.__exit__(None, None, None)


@pytest.fixture
def later(now):
    """A day after ``now``."""
    return now + timedelta(days=1)


@pytest.fixture
def emit_at(db):
    """Emit an event: ``emit_at("order.placed", order, now, …)``."""

    def emit_event(name, entity, now, **given):
        given = {"key": "", "payload": {}, "actor": "", "occurred_at": None, "using": "default"} | given
        return emit(name=name, entity=entity, now=now, **given)

    return emit_event


@pytest.fixture
def start_at(db):
    """Start a run by hand: ``start_at("job", order, now, …)``."""

    def start_run(timeline, entity, now, **given):
        given = {"key": "", "params": {}, "started_at": None, "using": "default"} | given
        return start(timeline=timeline, entity=entity, now=now, **given)

    return start_run


@pytest.fixture
def start_each_at(db):
    """Start a run of each of many by hand, in their order, by a few statements: ``start_each_at("job", orders, now)``."""

    def start_runs(timeline, entities, now):
        label = registry.timeline(timeline).label
        portions = batches_of(entities, 1000, "default", label)
        begun = start_many(
            timeline=timeline, batches=portions, key="", params={}, started_at=None, clock=lambda using: now
        )
        assert begun.started == len(entities)

    return start_runs


@pytest.fixture
def schedule_at(db):
    """Schedule a task ad hoc: ``schedule_at("job.work", order, at, now, …)`` gives its row."""

    def schedule_task(task_key, entity, at, now, **given):
        given = {"key": "", "payload": {}, "cause": None, "using": "default"} | given
        return schedule(task_key=task_key, entity=entity, at=at, now=now, **given)

    return schedule_task


@pytest.fixture
def run_at(db):
    """Run one task at a moment: ``run_at(row, moment)`` gives it with its outcome, or None."""

    def run_task(row, moment, **given):
        done = run(task_ids=[row.pk], clock=lambda: moment, using="default", **given)
        assert len(done) < 2
        return done[0] if done else None

    return run_task


@pytest.fixture
def let_lease_run_out():
    """Let the lease of a row have run out: its holder was not heard of."""

    def run_out(row):
        type(row).objects.filter(pk=row.pk).update(lease_expires_at=EARLIEST)

    return run_out


@pytest.fixture
def statements_of():
    """
    List the statements that an act makes, to compare few rows with many.

    An INSERT of many rows is taken for one, though Django cuts it to the 999 parameters it allows itself on SQLite.
    """

    def listed(act):
        with CaptureQueriesContext(connection) as queries:
            act()
        asked = [re.sub("'[^']*'", "'…'", query["sql"].replace('"', "")) for query in queries]
        asked = [" ".join(sql.split()[:3]) if sql.startswith("INSERT") else sql[:70] for sql in asked]
        asked = [sql.partition("SAVEPOINT")[0] + "SAVEPOINT" if "SAVEPOINT" in sql else sql for sql in asked]
        return [sql for sql, same in itertools.groupby(asked) for sql in (same if "INSERT" not in sql else [sql])]

    return listed


@pytest.fixture
def settings_of_writes():
    """The values with which an act writes, of a setting that is ``on``: ``settings_of_writes("synchronous_commit", act)``."""

    def listed(name, act):
        values = []
        if not connection.in_atomic_block:
            connection.cursor().execute(f"SET {name} = on")

        def ask(execute, sql, parameters, many, context):
            if sql.startswith(("INSERT", "UPDATE")):
                with connection.cursor() as cursor:
                    cursor.execute("SELECT current_setting(%s)", [name])
                    values.extend(cursor.fetchone())
            return execute(sql, parameters, many, context)

        try:
            with connection.execute_wrapper(ask):
                act()
        finally:
            if not connection.in_atomic_block:
                connection.cursor().execute(f"RESET {name}")
        return values

    return listed


@pytest.fixture
def crowd(now, start_each_at):
    """
    Have ``crowd.work`` due a day later for each of so many orders: ``crowd(3, handler, …)`` gives the rows, first to last.

    In a run, with ``crowd.follow`` two days after; or ad hoc.
    """
    with ExitStack() as known:

        def declare(count, handler=nothing, *, when=None, declared=None, ad_hoc=False, **options):
            known.enter_context(only_timelines(timeline_of(handler, when, declared or {}, options)))
            orders = Order.objects.bulk_create([Order(ships_at=now) for _ in range(count)])
            if not ad_hoc:
                start_each_at("crowd", orders, now)
            for order in orders if ad_hoc else []:
                at = now + timedelta(days=1)
                schedule(
                    task_key="crowd.work",
                    entity=order,
                    at=at,
                    key="",
                    payload={},
                    cause=None,
                    now=now,
                    using="default",
                )
            return list(ScheduledTask.objects.open().filter(task_key="crowd.work").order_by("pk"))

        yield declare


def nothing(job, given):
    """Do nothing."""


def timeline_of(handler, when, declared, options):
    """Declare a timeline about the handler, plain or async, of one or of many."""
    if iscoroutinefunction(handler):

        async def work(self, order):
            return await handler(self, order)
    else:

        def work(self, given):
            return handler(self, given)

    step = task(when or after(days=1), **options)(work)
    body = {
        "entity": "testapp.Order",
        "exits": {"order.closed": "closed"},
        "time_zone": "zone",
        "language": "language",
        "work": step,
        "follow": task(after(step, days=2))(lambda self, order: None),
    }
    body["follow"].name = "follow"
    return new_class("Crowd", (Timeline,), exec_body=lambda namespace: namespace.update(body | declared))


@pytest.fixture
def run_all(later):
    """Run tasks together, a day later: ``run_all(rows)`` gives them as they are then, in their order."""

    def run_them(rows, **given):
        run(task_ids=[row.pk for row in rows], clock=lambda: later, using="default", **given)
        there = ScheduledTask.objects.in_bulk([row.pk for row in rows])
        return [there[row.pk] for row in rows]

    return run_them


@pytest.fixture
def patient(monkeypatch):
    """Let a group take as long as it likes, so that how slow this machine is changes nothing."""
    monkeypatch.setattr("timeline.engine.execute.BUDGET", timedelta(hours=1))


@pytest.fixture
def hasty(monkeypatch):
    """Let each group's time be up after its first handler."""
    monkeypatch.setattr("timeline.engine.execute.BUDGET", timedelta(0))
