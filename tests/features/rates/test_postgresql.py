"""Many who ask at once: no more begin than may; a row that somebody keeps locked holds up nobody else."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connections, transaction
from django.utils import timezone

from timeline.features.rates import store
from timeline.features.rates.declaration import Allowance
from timeline.features.rates.store import Asked, admit, forget, slow_down
from timeline.models import RateKey

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only_postgresql]

HOUR = timedelta(hours=1)
ALLOWED = Allowance(50, HOUR)


def ask(*keys, number=1):
    several = {key: (ALLOWED, [Asked(False) for _ in range(number)]) for key in keys}
    try:
        busy = admit(several, now=timezone.now(), using="default")
    finally:
        if threading.current_thread() is not threading.main_thread():
            connections.close_all()
    return {key: sum(bool(each.counted) for each in asked) for key, (_allowed, asked) in several.items()}, set(busy)


@pytest.fixture
def locked():
    """Keep the row of the key "held" locked by somebody else."""
    ask("held")
    ready, go_on = threading.Event(), threading.Event()

    def keep():
        with transaction.atomic():
            RateKey.objects.select_for_update().get(key="held")
            ready.set()
            go_on.wait(30)
        connections.close_all()

    thread = threading.Thread(target=keep)
    thread.start()
    assert ready.wait(30)
    yield
    go_on.set()
    thread.join()


class TestMany:
    def test_let_no_more_begin_than_may(self):
        """They ask for the same keys in different orders; the rows are made by whoever comes first."""
        keys = [f"key{number}" for number in range(5)]
        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(lambda turn: ask(*keys[turn % 5 :], *keys[: turn % 5], number=4), range(24)))

        busy = [key for _counts, several in answers for key in several]
        told = {key: sum(counts[key] for counts, _busy in answers) for key in keys}
        assert all(told[key] == 50 for key in keys if key not in busy)
        assert all(count <= 50 for count in told.values())
        assert len(busy) < 24
        assert all(len(row.starts.split(",")) <= 50 for row in RateKey.objects.all())


class TestTwoWhoAskForTheSameKeys:
    def test_do_not_wait_in_a_circle(self, monkeypatch):
        """One key has a row, which the first has locked, and the other has none: the second makes that at this moment."""
        ask("there")
        made, second, made_new = threading.Event(), ThreadPoolExecutor(1), store._made

        def make(*given):
            if threading.current_thread() is threading.main_thread():
                asked.append(second.submit(ask, "there", "missing"))
                made.wait(5)
            else:
                threading.Timer(0.3, made.set).start()
            return made_new(*given)

        asked = []
        monkeypatch.setattr(store, "_made", make)
        first = ask("there", "missing")

        assert first == ({"there": 1, "missing": 1}, set())
        assert asked[0].result() == ({"there": 1, "missing": 1}, set())


class TestARowThatSomebodyKeepsLocked:
    def test_holds_up_what_shares_its_key_and_nothing_else(self, locked):
        since = time.monotonic()

        counts, busy = ask("held", "free")

        assert (counts, busy) == ({"held": 0, "free": 1}, {"held"})
        assert time.monotonic() - since < 10

    def test_does_not_keep_an_outcome_from_being_written(self, locked):
        now = timezone.now()

        assert not slow_down("held", until=now + HOUR, now=now, using="default")

    def test_is_not_deleted(self, locked):
        RateKey.objects.bulk_create([RateKey(key="old", kept_until=timezone.now() - HOUR)])

        assert forget(now=timezone.now() + timedelta(days=9), most=10, using="default") == 1
        assert RateKey.objects.get().key == "held"
