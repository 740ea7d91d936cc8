"""Several who give places at once: never more than there are, and nobody is refused by the index."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, connections

from tests.testapp.models import Order
from timeline import Limit, Timeline, task
from timeline.engine.groups import run, run_begun
from timeline.features.limits.claims import begin_limited, claim_limited
from timeline.features.limits.places import limited_kinds
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.shortcuts import schedule
from timeline.testing import only_timelines

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only_postgresql]

TASKS = 60
STARTERS = 4


class Inside:
    """Counts who is within, and remembers the most."""

    def __init__(self):
        self.lock, self.now, self.most = threading.Lock(), 0, 0

    def __enter__(self):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_raised):
        with self.lock:
            self.now -= 1


inside = Inside()


class Narrow(Timeline):
    """Two at a time, all together."""

    entity = "testapp.Order"

    @task(limit=2, atomic=False)
    def call(self, order):
        with inside:
            time.sleep(0.03)

    @task(limit=Limit(1, by="note"), atomic=False)
    def by_note(self, order): ...

    @task(limit=Limit(2, "desk"), atomic=False)
    def ask(self, order):
        with inside:
            time.sleep(0.01)

    @task(limit=Limit(2, "desk"), priority=-1)
    def tell(self, order):
        with inside:
            time.sleep(0.01)


@pytest.fixture(autouse=True)
def known():
    inside.__init__()
    with only_timelines(Narrow):
        yield


@pytest.fixture
def journal():
    """The database's own account: the places that are held, whenever a row that has one is written."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE seen_places (limit_key text, held integer)")
        cursor.execute(
            """
            CREATE FUNCTION see_places() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                INSERT INTO seen_places SELECT NEW.limit_key, count(*) FROM timeline_scheduledtask
                WHERE limit_key = NEW.limit_key AND state IN ('pending', 'active');
                RETURN NULL;
            END $$
            """
        )
        cursor.execute(
            "CREATE CONSTRAINT TRIGGER see_places AFTER UPDATE ON timeline_scheduledtask"
            " INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.slot > 0) EXECUTE FUNCTION see_places()"
        )
    yield lambda: dict(_most_of())
    with connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER see_places ON timeline_scheduledtask")
        cursor.execute("DROP FUNCTION see_places")
        cursor.execute("DROP TABLE seen_places")


def _most_of():
    with connection.cursor() as cursor:
        cursor.execute("SELECT limit_key, max(held) FROM seen_places GROUP BY limit_key")
        return cursor.fetchall()


def fill(now, name, notes=("",)):
    for number in range(TASKS):
        order = Order.objects.create(note=notes[number % len(notes)])
        schedule(f"narrow.{name}", order, at=now - timedelta(seconds=TASKS - number))


def at_once(work):
    """Let starters work until nothing is open. What one of them raises is raised here."""

    def until_done(number):
        try:
            give_up = time.monotonic() + 120
            while ScheduledTask.objects.open().exists() and time.monotonic() < give_up:
                work(number)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(STARTERS) as pool:
        list(pool.map(until_done, range(STARTERS)))


class TestRace:
    def test_of_those_who_start(self, now, journal):
        fill(now, "call")

        def work(number):
            for kind in limited_kinds(["narrow.call"], using="default"):
                attempts = begin_limited(kind, most=10, worker=f"w{number}", now=now, using="default")
                if attempts:
                    run_begun(attempts, clock=lambda: now, using="default")

        at_once(work)

        assert ScheduledTask.objects.filter(state=State.COMPLETED, attempt=1).count() == TASKS
        assert inside.most == 2
        assert journal() == {"narrow.call": 2}

    def test_of_those_who_start_and_claim_kinds_that_share_a_key(self, now, journal):
        fill(now, "ask")
        fill(now, "tell")

        def work(number):
            if number % 2:
                for batch in claim_limited(now=now, using="default"):
                    run(task_ids=batch.task_ids, clock=lambda: now, using="default", token=batch.token)
                return
            for kind in limited_kinds(["narrow.ask", "narrow.tell"], using="default"):
                attempts = begin_limited(kind, most=10, worker=f"w{number}", now=now, using="default")
                if attempts:
                    run_begun(attempts, clock=lambda: now, using="default")

        at_once(work)

        assert ScheduledTask.objects.filter(state=State.COMPLETED, attempt=1).count() == 2 * TASKS
        assert inside.most == 2
        assert journal() == {"desk": 2}

    def test_of_those_who_claim(self, now, journal):
        fill(now, "by_note", ["a", "b", "c"])

        def work(_number):
            for batch in claim_limited(now=now, using="default"):
                run(task_ids=batch.task_ids, clock=lambda: now, using="default", token=batch.token)

        at_once(work)

        assert ScheduledTask.objects.filter(state=State.COMPLETED, attempt=1).count() == TASKS
        assert journal() == {f"narrow.by_note:{note}": 1 for note in "abc"}
