"""Floors: what comes in below the place where a process begins to look is found all the same, and when."""

from __future__ import annotations

from datetime import timedelta
from time import monotonic
from uuid import UUID

import pytest

from timeline.dispatch.poll import dispatch, stage_and_tell
from timeline.features.holds.verbs import hold
from timeline.lifecycle import Reason, ReasonCode, State, Trigger
from timeline.models import Hold, ScheduledTask
from timeline.store import floors
from timeline.store.floors import BEGINNING, Floor, IndexPlace, look_anew
from timeline.store.poll_queries import probe_waiting
from timeline.store.task_key_stats import ranges, ready_kinds
from timeline.store.transition import Write, apply
from timeline.testing import StoryClock
from timeline.worker import Worker

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
KEY = "trial.remind"


@pytest.fixture
def _kept(monkeypatch):
    """Let each look count as slow, and the next whole one be far ahead."""
    monkeypatch.setattr(floors, "SLOW", 0.0)
    monkeypatch.setattr(floors, "MANY", 0)
    monkeypatch.setattr(floors, "SHARE", 1e9)


def first_ready(now):
    found = ready_kinds([KEY], now=now, using="default").get(KEY)
    return found and found.id


class TestFloor:
    """A pure rule: when looks are whole."""

    @pytest.fixture(autouse=True)
    def _as_it_is(self, monkeypatch):
        monkeypatch.setattr(floors, "MANY", 20_000)
        yield
        floors.note_dead(0, using="default")

    def look(self, floor, *, took=0.0, place=5):
        begin, whole = floor.begin()
        floor.found(lambda: place, monotonic() - took, whole=whole, using="default")
        return begin, whole

    @pytest.fixture
    def floor(self):
        return Floor(lambda: 0)

    def test_is_not_kept_after_a_quick_look(self, floor):
        assert [self.look(floor), self.look(floor)] == [(0, True), (0, True)]

    def test_is_not_kept_where_few_rows_are_dead(self, floor):
        floors.note_dead(100, using="default")

        assert [self.look(floor, took=1.0), self.look(floor)] == [(0, True), (0, True)]

    def test_is_kept_after_a_slow_look_among_dead_rows_and_moves_up(self, floor):
        floors.note_dead(100_000, using="default")

        looks = [self.look(floor, took=1.0), self.look(floor, place=7), self.look(floor)]

        assert looks == [(0, True), (5, False), (7, False)]

    @pytest.mark.parametrize(("took", "after"), [(0.1, 4), (0.3, 12), (2.0, 15), (60.0, 15)])
    def test_lasts_for_forty_times_that_look_or_fifteen_seconds(self, floor, monkeypatch, took, after):
        floors.note_dead(100_000, using="default")
        begun = monotonic()
        self.look(floor, took=took)

        for seconds, whole in ((after - 1, False), (after + 1, True)):
            monkeypatch.setattr(floors, "monotonic", lambda at=begun + seconds: at)
            assert floor.begin()[1] == whole, seconds

    def test_that_was_taken_away_meanwhile_stays_away(self, floor):
        floors.note_dead(100_000, using="default")
        self.look(floor, took=1.0)
        _begin, whole = floor.begin()
        floor.place = None

        floor.found(lambda: 9, monotonic(), whole=whole, using="default")

        assert floor.place is None


class TestRanges:
    def test_leave_out_only_what_is_before_a_place(self, now):
        later = IndexPlace(now, UUID(int=7))

        found = ranges(["a.one", "b.two"], {"a.one": {0: later, -5: BEGINNING}})

        parts = zip(found["task_keys"], found["priorities"], found["since"], found["before"], strict=True)
        assert list(parts) == [
            ("a.one", -(2**15), BEGINNING.since, -5),
            ("a.one", -5, BEGINNING.since, 0),
            ("a.one", 0, now, 2**15),
            ("b.two", -(2**15), BEGINNING.since, 2**15),
        ]

    def test_are_none_of_no_kind(self):
        assert ranges([], {}) == {"task_keys": [], "priorities": [], "since": [], "since_ids": [], "before": []}


@pytest.mark.only_postgresql
@pytest.mark.django_db
@pytest.mark.usefixtures("_kept")
class TestWhatComesInBelow:
    def test_is_found_by_the_next_whole_look(self, make_task, now):
        first = make_task(state=State.SCHEDULED, scheduled_at=now - SECOND)
        assert probe_waiting(now=now, using="default").first_due.id == first.pk
        below = make_task(state=State.SCHEDULED, scheduled_at=now - HOUR, occurrence="below")

        seen = probe_waiting(now=now, using="default").first_due.id
        look_anew(using="default")

        assert (seen, probe_waiting(now=now, using="default").first_due.id) == (first.pk, below.pk)

    def test_is_found_at_once_if_it_is_due_now(self, make_task, now):
        """Though nothing was due before: what is committed a little late, too."""
        assert probe_waiting(now=now, using="default").first_due is None
        make_task(state=State.RETRYABLE, scheduled_at=now - SECOND / 2)

        assert probe_waiting(now=now, using="default").first_due is not None

    def test_is_found_at_once_if_it_is_more_urgent(self, make_task, now):
        make_task(task_key=KEY, state=State.AVAILABLE, priority=0, scheduled_at=now - HOUR)
        first_ready(now)
        urgent = make_task(task_key=KEY, state=State.AVAILABLE, priority=-1, scheduled_at=now, occurrence="urgent")

        assert first_ready(now) == urgent.pk

        ScheduledTask.objects.filter(pk=urgent.pk).delete()
        first_ready(now)
        again = make_task(task_key=KEY, state=State.AVAILABLE, priority=-1, scheduled_at=now, occurrence="again")

        assert first_ready(now) == again.pk

    def test_is_found_at_once_if_this_process_has_staged_it(self, make_task, now):
        make_task(task_key=KEY, state=State.AVAILABLE, scheduled_at=now - SECOND)
        stage_and_tell(limit=10, now=now, using="default")
        first_ready(now)
        below = make_task(task_key=KEY, state=State.SCHEDULED, scheduled_at=now - HOUR, occurrence="below")
        look_anew_of_waiting()

        assert stage_and_tell(limit=10, now=now, using="default") == (1, True)
        assert first_ready(now) == below.pk

    def test_is_found_at_once_if_a_hold_is_released(self, make_task, order, now):
        held = make_task(
            task_key=KEY,
            state=State.AVAILABLE,
            scheduled_at=now - HOUR,
            entity_label="testapp.order",
            entity_id=str(order.pk),
        )
        free = make_task(task_key=KEY, state=State.AVAILABLE, scheduled_at=now - SECOND, occurrence="free")
        made = hold(scope="entity", entity=order, reason="x", now=now, using="default")
        assert first_ready(now) == free.pk
        Hold.objects.filter(pk=made.pk).delete()

        assert first_ready(now) == held.pk

    def test_is_found_at_once_if_it_is_tried_again(self, make_task, now):
        task = make_task(task_key=KEY, state=State.ACTIVE, attempt=1, scheduled_at=now - HOUR)
        stage_and_tell(limit=10, now=now, using="default")
        first_ready(now)
        again = Write(task=task, triggers=(Trigger.RETRY,), scheduled_at=now, reason=Reason(ReasonCode.RELEASED))
        apply([again], now=now, using="default")

        assert stage_and_tell(limit=10, now=now, using="default").tasks == 1
        assert first_ready(now) == task.pk

    def test_is_found_where_the_clock_was_set_back(self, make_task, now):
        """By the next whole look, as all that is below."""
        probe_waiting(now=now + HOUR, using="default")
        make_task(state=State.SCHEDULED, scheduled_at=now - SECOND)
        look_anew(using="default")

        assert probe_waiting(now=now, using="default").first_due is not None

    def test_is_run_by_a_worker_that_has_nothing_to_do_within_a_round(self, make_task, now):
        """Each of these is one look of a poll interval."""
        with StoryClock(now):
            worker = Worker("default")
            worker.poll()
            task = make_task(task_key="storage.open", state=State.SCHEDULED, scheduled_at=now - HOUR)
            worker._next_round = 0.0
            worker.poll()

        task.refresh_from_db()
        assert task.attempt == 1

    def test_is_run_within_a_round_by_a_worker_that_has_a_little_to_do_all_the_time(self, make_task, now):
        with StoryClock(now):
            worker = Worker("default")
            make_task(task_key="storage.open", state=State.SCHEDULED, scheduled_at=now, occurrence="first")
            worker.poll()
            below = make_task(task_key="storage.open", state=State.SCHEDULED, scheduled_at=now - HOUR)
            make_task(task_key="storage.open", state=State.SCHEDULED, scheduled_at=now, occurrence="second")
            worker._next_round = 0.0
            worker.poll()

        below.refresh_from_db()
        assert below.attempt == 1

    def test_is_sent_by_the_poll_after_one_that_left_nothing(self, make_task, now):
        sent = Sent()
        dispatch(sender=sent, now=now, using="default")
        task = make_task(task_key=KEY, state=State.SCHEDULED, scheduled_at=now - HOUR)

        dispatch(sender=sent, now=now, using="default")

        assert sent.ids == [task.pk]


def look_anew_of_waiting():
    for floor in floors.floors_of("waiting", using="default"):
        floor.place = None


class Sent:
    """A broker that takes everything, and knows it."""

    def __init__(self):
        self.ids = []

    def connect(self):
        """It is there."""

    def send(self, batch, *, using):
        """It is taken."""
        self.ids.extend(batch.task_ids)
