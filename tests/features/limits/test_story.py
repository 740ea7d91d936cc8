"""Only so many at once: a place is part of the row that holds it, so whatever becomes of that becomes of the place."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from django.db import IntegrityError
from django.utils import timezone

from tests.features.limits import limited
from tests.features.limits.limited import finish, held, stage_all
from tests.testapp.models import Order
from timeline import Discard, Limit, Retry, RetryAfter, Timeline, after, task
from timeline.dispatch.poll import dispatch
from timeline.dispatch.rescue import rescue
from timeline.engine.groups import give_back, run
from timeline.features.limits.reading import limits
from timeline.features.maintenance.prune import prune
from timeline.lifecycle import LEASED, Reason, State
from timeline.models import Opening, ScheduledTask, TimelineRun
from timeline.operations.cancel import cancel
from timeline.operations.move import move
from timeline.operations.redrive import redrive
from timeline.shortcuts import explain, leave, open_limit, schedule, start
from timeline.signals import work_due
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

SECOND = timedelta(seconds=1)
entered: list[str] = []
errors: list[Exception] = []


class Calls(Timeline):
    """One at a time, of all together."""

    entity = "testapp.Order"

    @task(limit=1, atomic=False, retry=Retry(max_attempts=3))
    def call(self, order):
        entered.append(str(order.pk))
        if errors:
            raise errors.pop(0)

    @task(limit=3, atomic=False)
    def several(self, order):
        entered.append(str(order.pk))

    @task(limit=Limit(1, by="note"), atomic=False)
    def by_note(self, order):
        entered.append(order.note)


class Settling(Timeline):
    """One at a time until its end."""

    @task(limit=Limit(1, "settlement", until="end"), atomic=False, retry=Retry(max_attempts=3))
    def settle(self):
        entered.append(self.task.occurrence)
        if errors:
            raise errors.pop(0)

    @task(limit=Limit(1, "report", until="end", on_discard="open"), atomic=False, retry=Retry(max_attempts=1))
    def report(self):
        entered.append(self.task.occurrence)
        if errors:
            raise errors.pop(0)


@pytest.fixture(autouse=True)
def known():
    entered.clear()
    errors.clear()
    with only_timelines(Calls, Settling):
        yield


@pytest.fixture
def calls(now):
    """Calls for so many orders, due one after the other."""

    def scheduled(number, name="call", notes=("",)):
        orders = [Order.objects.create(note=notes[place % len(notes)]) for place in range(number)]
        return [
            schedule(f"calls.{name}", order, at=now - (number - place) * SECOND).task
            for place, order in enumerate(orders)
        ]

    return scheduled


@pytest.fixture
def settlements(now):
    """Two settlements: Monday's is due before Tuesday's."""

    def scheduled(name="settle"):
        days = [(now - 2 * SECOND, "monday"), (now - SECOND, "tuesday")]
        return [schedule(f"settling.{name}", None, at=at, key=key).task for at, key in days]

    return scheduled


@pytest.fixture
def begin(now):
    """Begin what has a place."""
    return lambda task_key, at=now: limited.begin(task_key, at)


class Posts:
    """A broker that takes everything."""

    def __init__(self):
        self.batches = []

    def connect(self): ...

    def send(self, batch, *, using):
        self.batches.append(batch)


class TestPlaces:
    def test_only_so_many_are_under_way_and_who_has_waited_longest_is_next(self, calls, begin, now):
        first, second, third = calls(3)

        begun = begin("calls.call")
        refused = begin("calls.call")
        finish(begun, now)
        following = begin("calls.call")

        assert [attempt.task.pk for attempt in begun] == [first.pk]
        assert refused == []
        assert [attempt.task.pk for attempt in following] == [second.pk]
        third.refresh_from_db()
        assert (third.state, third.attempt, third.slot) == (State.AVAILABLE, 0, 0)

    def test_a_group_has_one_of_each_key(self, calls, begin, now):
        calls(4, "by_note", ["a", "b"])

        begun = begin("calls.by_note")

        assert sorted(attempt.task.limit_key for attempt in begun) == ["calls.by_note:a", "calls.by_note:b"]
        assert begin("calls.by_note") == []

    def test_a_key_of_its_own_holds_up_nobody_else(self, calls, begin, now):
        calls(20, "by_note", ["flood"] * 19 + ["other"])

        finish(begin("calls.by_note"), now)

        assert Counter(entered) == {"flood": 1, "other": 1}

    @pytest.mark.only_sqlite
    def test_a_key_of_any_text_is_found_again(self, calls, begin, now):
        """PostgreSQL has no such text."""
        calls(2, "by_note", ["a\x00b"])

        for _number in range(2):
            finish(begin("calls.by_note"), now)

        assert entered == ["a\x00b"] * 2

    def test_as_many_as_there_are_places(self, calls, begin):
        calls(5, "several")

        begun = [begin("calls.several") for _turn in range(4)]

        assert [len(attempts) for attempts in begun] == [1, 1, 1, 0]
        assert held("calls.several") == [1, 2, 3]

    def test_two_who_hold_the_same_place_are_refused_by_the_database(self, calls, begin):
        _first, second = calls(2)
        begin("calls.call")

        with pytest.raises(IntegrityError):
            ScheduledTask.objects.filter(pk=second.pk).update(slot=1)

    def test_nothing_is_claimed_without_one(self, calls):
        [first, *_rest] = calls(1)

        with pytest.raises(IntegrityError):
            ScheduledTask.objects.filter(pk=first.pk).update(state=State.PENDING, lease_expires_at=first.created_at)

    def test_a_group_of_what_needs_no_place_passes_it_over(self, calls, now):
        [first, *_rest] = calls(1)

        assert run(task_ids=[first.pk], clock=lambda: now, using="default") == []


class TestOverABroker:
    def test_a_message_carries_what_has_a_place(self, calls, now):
        first, second = calls(2)
        posts = Posts()

        dispatch(sender=posts, now=now, using="default")
        dispatch(sender=posts, now=now, using="default")
        [batch] = posts.batches
        run(task_ids=batch.task_ids, clock=lambda: now, using="default", token=batch.token)
        dispatch(sender=posts, now=now, using="default")

        assert batch.task_ids == [first.pk]
        assert [batch.task_ids for batch in posts.batches[1:]] == [[second.pk]]

    def test_no_two_of_a_key_are_in_one_message(self, calls, now):
        calls(5, "several")
        posts = Posts()

        dispatch(sender=posts, now=now, using="default")

        assert [len(batch.task_ids) for batch in posts.batches] == [1, 1, 1]


class TestHolder:
    def test_whose_worker_is_killed_gives_its_place_up_when_its_lease_runs_out(self, calls, begin, now):
        first, second = calls(2)
        begin("calls.call")
        ScheduledTask.objects.filter(pk=first.pk).update(lease_expires_at=first.created_at)

        rescue(now=now, using="default")

        assert held("calls.call") == []
        [attempt] = begin("calls.call")
        assert attempt.task.pk == second.pk

    def test_of_a_key_until_its_end_keeps_its_place_when_its_worker_is_killed(self, settlements, begin, now):
        monday, _tuesday = settlements()
        begin("settling.settle")
        ScheduledTask.objects.filter(pk=monday.pk).update(lease_expires_at=monday.created_at)

        rescue(now=now, using="default")
        stage_all(now)
        [attempt] = begin("settling.settle")

        assert (attempt.task.pk, attempt.task.attempt, attempt.task.slot) == (monday.pk, 2, 1)

    def test_that_a_stopping_worker_gives_back_unentered_gives_its_place_up(self, settlements, begin, now):
        monday, tuesday = settlements()

        give_back(begin("settling.settle"), now=now + SECOND, using="default")

        monday.refresh_from_db()
        assert (monday.state, monday.slot) == (State.RETRYABLE, 0)
        [attempt] = begin("settling.settle")
        assert attempt.task.pk == tuesday.pk

    def test_that_was_never_entered_keeps_nothing_closed_when_it_is_cancelled(self, settlements, begin, now):
        """A worker that stopped has given it back; the next attempt is on its way to a worker."""
        monday, tuesday = settlements()
        give_back(begin("settling.settle"), now=now - 9 * SECOND, using="default")
        stage_all(now)
        ScheduledTask.objects.filter(pk=tuesday.pk).update(priority=9)
        dispatch(sender=Posts(), now=now, using="default")
        monday.refresh_from_db()
        assert (monday.state, monday.attempt, monday.slot) == (State.PENDING, 1, 1)

        cancel(task_ids=[monday.pk], reason=Reason.operator("not today"), now=now, using="default")

        assert held("settlement") == []
        assert [attempt.task.pk for attempt in begin("settling.settle")] == [tuesday.pk]

    def test_that_was_entered_before_keeps_it_when_it_is_given_back(self, settlements, begin, now):
        monday, _tuesday = settlements()
        errors.append(RetryAfter(SECOND))
        finish(begin("settling.settle"), now)
        later = now + 2 * SECOND
        stage_all(later)

        give_back(begin("settling.settle", later), now=later, using="default")

        monday.refresh_from_db()
        assert (monday.state, monday.slot) == (State.RETRYABLE, 1)

    def test_that_waits_to_be_tried_again_gives_its_place_up_or_keeps_it(self, calls, settlements, begin, now):
        first, second = calls(2)
        monday, _tuesday = settlements()
        errors.extend([ValueError("no answer"), ValueError("half done")])

        finish(begin("calls.call"), now)
        finish(begin("settling.settle"), now)

        first.refresh_from_db()
        monday.refresh_from_db()
        assert (first.state, first.slot) == (State.RETRYABLE, 0)
        assert (monday.state, monday.slot) == (State.RETRYABLE, 1)
        assert [attempt.task.pk for attempt in begin("calls.call")] == [second.pk]
        assert begin("settling.settle") == []

    def test_that_is_tried_again_is_before_those_that_wait(self, settlements, begin, now):
        monday, _tuesday = settlements()
        errors.append(RetryAfter(SECOND))
        finish(begin("settling.settle"), now)
        later = now + 2 * SECOND
        stage_all(later)

        ended = finish(begin("settling.settle", later), later)

        assert [(task.pk, task.state) for task in ended] == [(monday.pk, State.COMPLETED)]
        assert held("settlement") == []


class TestClosed:
    def test_a_key_is_closed_when_its_holder_is_discarded(self, settlements, begin, now):
        monday, _tuesday = settlements()
        errors.append(Discard("the bank says no"))

        finish(begin("settling.settle"), now)

        monday.refresh_from_db()
        assert (monday.state, monday.slot) == (State.DISCARDED, 1)
        assert begin("settling.settle") == []

    def test_it_stays_open_where_the_limit_says_so(self, settlements, begin, now):
        _monday, tuesday = settlements("report")
        errors.append(Discard("no data"))

        finish(begin("settling.report"), now)

        assert [attempt.task.pk for attempt in begin("settling.report")] == [tuesday.pk]

    def test_it_is_closed_when_a_holder_is_cancelled_whose_handler_may_still_run(self, settlements, begin, now):
        monday, _tuesday = settlements()
        begin("settling.settle")

        cancel(task_ids=[monday.pk], reason=Reason.operator("stop it"), now=now, using="default")

        assert begin("settling.settle") == []
        assert held("settlement") == [1]

    def test_a_holder_that_nobody_has_started_gives_its_place_up_when_it_is_cancelled(self, settlements, begin, now):
        monday, tuesday = settlements()
        dispatch(sender=Posts(), now=now, using="default")

        cancel(task_ids=[monday.pk], reason=Reason.operator("not today"), now=now, using="default")

        assert [attempt.task.pk for attempt in begin("settling.settle")] == [tuesday.pk]

    def test_a_redrive_takes_the_place_over_and_goes_on(self, settlements, begin, now):
        monday, tuesday = settlements()
        errors.append(Discard("the bank says no"))
        finish(begin("settling.settle"), now)

        [again] = redrive(task_ids=[monday.pk], reason=Reason.operator("it says yes"), now=now, using="default")
        [attempt] = begin("settling.settle")
        finish([attempt], now)

        assert (again.slot, attempt.task.pk) == (1, again.pk)
        assert [attempt.task.pk for attempt in begin("settling.settle")] == [tuesday.pk]

    def test_a_person_opens_it(self, settlements, begin, now):
        monday, tuesday = settlements()
        errors.append(Discard("the bank says no"))
        finish(begin("settling.settle"), now)

        opened = open_limit("settlement", reason="paid by hand", actor="ada")

        [kept] = Opening.objects.all()
        assert [task.pk for task in opened] == [monday.pk]
        assert (kept.task_id, kept.reason, kept.actor) == (monday.pk, "paid by hand", "ada")
        assert [attempt.task.pk for attempt in begin("settling.settle")] == [tuesday.pk]

    def test_it_is_not_opened_by_pruning(self, settlements, begin, now):
        monday, _tuesday = settlements()
        errors.append(Discard("the bank says no"))
        finish(begin("settling.settle"), now)

        prune(ended_before=now + timedelta(days=400), using="default")

        assert ScheduledTask.objects.filter(pk=monday.pk).exists()
        assert held("settlement") == [1]


class TestExplain:
    def test_names_who_holds_the_place_that_a_task_waits_for(self, settlements, begin, now):
        monday, tuesday = settlements()
        begin("settling.settle")

        said = explain(tuesday)

        assert f"It waits for a place of “settlement”, held by settling.settle ({monday.pk}) since 2026-03-01" in said
        monday.refresh_from_db()
        assert "It holds place 1 of “settlement”." in explain(monday)

    def test_asks_for_a_worker_only_where_a_place_is_free(self, settlements, begin):
        """It waits for its turn, however long; but nothing is in its way any more when nobody has the place."""
        monday, tuesday = settlements()
        asked = "It is overdue: is a worker running?"

        is_first = explain(monday)
        begin("settling.settle")
        is_behind = explain(tuesday)

        assert "It needs a place of “settlement”, and one is free." in is_first
        assert asked in is_first
        assert asked not in is_behind

    def test_names_who_keeps_it_closed(self, settlements, begin, now):
        monday, tuesday = settlements()
        errors.append(Discard("the bank says no"))
        finish(begin("settling.settle"), now)
        monday.refresh_from_db()

        assert f"“settlement” is closed by settling.settle ({monday.pk})" in explain(tuesday)
        assert "It keeps “settlement” closed" in explain(monday)

    def test_lists_what_is_held_and_what_waits(self, settlements, calls, begin):
        settlements()
        calls(3)
        begin("settling.settle")

        first, second = limits(using="default")

        assert (first.key, len(first.places), first.waiting) == ("calls.call", 0, 3)
        assert (second.key, second.places[0].slot, second.waiting) == ("settlement", 1, 1)


class TestMoved:
    def test_a_started_holder_hands_its_place_on_to_its_next_revision(self, settlements, begin, now):
        monday, _tuesday = settlements()
        begin("settling.settle")
        later = now + 2 * SECOND

        [moved] = move(task_ids=[monday.pk], at=later, reason=Reason.operator("later"), now=now, using="default")

        moved.refresh_from_db()
        assert (moved.slot, moved.limit_key, held("settlement")) == (1, "settlement", [1])
        assert begin("settling.settle") == []
        stage_all(later)
        assert [attempt.task.pk for attempt in begin("settling.settle", later)] == [moved.pk]

    def test_one_that_waits_for_a_place_has_none_to_hand_on(self, settlements, now):
        monday, _tuesday = settlements()

        [moved] = move(task_ids=[monday.pk], at=now, reason=Reason.operator("later"), now=now, using="default")

        assert (moved.slot, moved.limit_key) == (0, "settlement")


class TestStoryClock:
    def test_runs_one_after_the_other(self, calls, clock, now):
        calls(3)
        errors.append(RetryAfter(SECOND))

        clock.run_due()
        clock.advance(seconds=2)

        assert len(entered) == 4
        assert not ScheduledTask.objects.open().exists()

    def test_leaves_what_waits_for_a_place_that_is_closed(self, settlements, clock):
        settlements()
        errors.append(Discard("the bank says no"))

        clock.run_due()

        assert entered == ["monday"]
        assert not ScheduledTask.objects.filter(state__in=LEASED).exists()


class Nightly(Timeline):
    """Settles as part of a run."""

    starts_on = "night.come"

    @task(after(), limit=Limit(1, "nightly", until="end"), atomic=False)
    def settle(self):
        if errors:
            raise errors.pop(0)


class Calling(Timeline):
    """Calls as part of a run."""

    entity = "testapp.Order"

    @task(after(), limit=1, atomic=False)
    def call(self, order): ...


class TestRuns:
    def test_one_that_keeps_a_limit_closed_is_not_pruned(self, now, begin):
        with only_timelines(Nightly):
            run_id = start(Nightly).run.pk
            errors.append(Discard("the bank says no"))
            late = timezone.now() + timedelta(days=1)
            finish(begin("nightly.settle", late), late)

            prune(ended_before=late + timedelta(days=400), using="default")
            kept = TimelineRun.objects.get(pk=run_id)
            open_limit("nightly", reason="paid by hand")
            prune(ended_before=late + timedelta(days=400), using="default")

        assert kept.is_finished
        assert not TimelineRun.objects.filter(pk=run_id).exists()

    def test_an_exit_that_cancels_who_is_under_way_says_at_once_that_a_place_is_free(self):
        with only_timelines(Calling):
            start(Calling, order := Order.objects.create())
            late = timezone.now() + timedelta(days=1)
            begun = limited.begin("calling.call", late)
            told = []

            def hear(**_extra):
                told.append(held("calling.call"))

            work_due.connect(hear)
            try:
                leave(Calling, order, reason="not tonight")
            finally:
                work_due.disconnect(hear)

        assert len(begun) == 1
        assert told[-1:] == [[]]

    def test_an_exit_that_cancels_who_is_under_way_leaves_the_limit_closed(self, begin):
        with only_timelines(Nightly):
            start(Nightly)
            late = timezone.now() + timedelta(days=1)
            begin("nightly.settle", late)

            leave(Nightly, reason="not tonight")

            assert ScheduledTask.objects.get().state == State.CANCELLED
            assert held("nightly") == [1]
