"""Several begin tasks of a destructive kind at once: together they never let in more than its brake allows."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone

from tests.postgresql import conftest as postgresql
from tests.processes import wait_for
from tests.testapp.models import Effect, Order
from timeline import Timeline, task
from timeline.engine.groups import begin_ready, run_begun
from timeline.features.holds.release import release
from timeline.features.holds.store import admit
from timeline.features.holds.verbs import park
from timeline.models import Admission, Hold, ScheduledTask
from timeline.shortcuts import schedule
from timeline.store.task_key_stats import ready_kinds
from timeline.testing import only_timelines
from timeline.timelines import Alerts

at_once = postgresql.at_once  # Fixtures.

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 6
MOST = 5
HOUR = timedelta(hours=1)


class Closing(Timeline):
    """Closes accounts, which nobody can undo."""

    entity = "testapp.Order"

    @task(destructive=True, park_above=MOST)
    def close(self, order: Order) -> None:
        Effect.objects.create(name="close")


@pytest.fixture(autouse=True)
def _closing(settings):
    settings.TIMELINE = {**settings.TIMELINE, "ALERTS": ["ops@example.com"]}
    with only_timelines(Closing, Alerts):
        yield


def run_what_is_ready():
    now = timezone.now()
    ready = ready_kinds(["closing.close"], using="default").get("closing.close")
    if ready is None:
        return
    given = {"priority": ready.priority, "since": ready.place, "parts": ready.parts}
    attempts = begin_ready(task_key="closing.close", most=2, clock=lambda: now, using="default", **given)
    run_begun(attempts, clock=timezone.now, using="default")


def poll_until(over):
    try:
        while not over.is_set():
            run_what_is_ready()
    finally:
        connections.close_all()


class TestBraked:
    @pytest.mark.parametrize("number", range(ROUNDS))
    def test_lets_in_no_more_than_allowed_however_many_begin(self, number):
        """They come in one by one, so that nobody ever sees more waiting than are allowed."""
        order, over = Order.objects.create(), threading.Event()

        with ThreadPoolExecutor(3) as pool:
            polls = [pool.submit(poll_until, over) for _poller in range(3)]
            for key in range(3 * MOST):
                schedule("closing.close", order, at=timezone.now(), key=str(key))
            try:
                wait_for(Hold.objects.exists, "the hold of the brake")
                over.wait(0.3)  # Whoever is still on their way.
            finally:
                over.set()
            for each in polls:
                each.result()

        held, entered = Hold.objects.get(), Effect.objects.filter(name="close").count()
        # One that was let in, and came to its turn late, is looked at again: then it is on hold, as all others are.
        assert entered <= Admission.objects.count() <= MOST
        assert ScheduledTask.objects.filter(task_key="alerts.tell", payload__hold=str(held.pk)).count() == 1


@pytest.mark.only_postgresql
class TestARelease:
    def test_goes_the_way_of_a_look_that_lets_in_the_same(self):
        """In order of ids: it is in no deadlock with it, whatever is due first."""
        now = timezone.now()
        order = Order.objects.create()
        later, first = (
            schedule("closing.close", order, at=now - timedelta(minutes=ago), key=str(ago)).task.pk for ago in (1, 2)
        )
        held = park("closing.close", most=MOST, within=HOUR, now=now, using="default")

        def let_go_now():
            try:
                release(hold_id=held.pk, actor="ada", reason="it is right", now=timezone.now(), using="default")
            finally:
                connections.close_all()

        with ThreadPoolExecutor(1) as pool:
            with transaction.atomic():
                admit("closing.close", {later: now}, using="default")
                released = pool.submit(let_go_now)
                wait_for(somebody_waits, "a release that waits", within=20)
                admit("closing.close", {first: now}, using="default")
            released.result()

        assert set(Admission.objects.values_list("pk", flat=True)) == {later, first}


def somebody_waits():
    """Whether somebody else waits for what this connection's transaction has locked."""
    asked = "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
    with connection.cursor() as cursor:
        cursor.execute(asked)
        return cursor.fetchone()[0] > 0


class TestPark:
    def test_makes_one_hold_of_many_at_the_same_moment(self, at_once):
        def park_now():
            return park("closing.close", most=MOST, within=HOUR, now=timezone.now(), using="default")

        held = at_once(*[park_now] * 4)

        assert len({hold.pk for hold in held}) == 1
        assert Hold.objects.count() == 1
        assert ScheduledTask.objects.filter(task_key="alerts.tell").count() == 1
