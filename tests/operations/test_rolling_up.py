"""Roll up: each entry of the log once, into figures by the hour."""

from __future__ import annotations

from datetime import timedelta
from time import monotonic

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from tests.rolling import PATIENCE, counted, rolled_up_once
from timeline.features.maintenance import figures
from timeline.features.maintenance.figures import bucket_of, forget_figures, roll_up
from timeline.features.maintenance.hooks import count_log
from timeline.lifecycle import State
from timeline.models import Figure, LogEntry, RollUp, Total

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _begun(transactional_db):
    roll_up(using="default")


@pytest.fixture
def log(now):
    """Write an entry: ``log(task, "active", "completed", after=3)``, so many seconds after now."""

    def write(task, source, target, *, after=0, code="", attempt=1, **detail):
        seq = task.log.count() + 1
        at = now + timedelta(seconds=after)
        return LogEntry.objects.create(
            task=task,
            seq=seq,
            at=at,
            from_state=source,
            to_state=target,
            attempt=attempt,
            reason_code=code,
            detail=detail,
        )

    return write


@pytest.fixture
def completed(make_task, log, now):
    """A task that started 4 seconds late and took 40."""
    begun = now + timedelta(seconds=4)
    task = make_task(state=State.COMPLETED, attempt=1, started_at=begun)
    log(task, "scheduled", "available", attempt=0)
    log(task, "available", "active", after=4)
    log(task, "active", "completed", after=44, code="done")
    return task


class TestRollUp:
    def test_counts_what_started_and_ended_by_hour_and_key(self, completed, make_task, log, now):
        other = make_task(state=State.CANCELLED)
        log(other, "scheduled", "cancelled", after=3600, code="operator")

        counted()

        first, second = Figure.objects.order_by("hour")
        assert (first.hour, first.task_key) == (now, "trial.remind")
        assert (first.started, first.completed, first.cancelled) == (1, 1, 0)
        assert first.lateness[bucket_of(timedelta(seconds=4))] == sum(first.lateness) == 1
        assert first.duration[bucket_of(timedelta(seconds=40))] == sum(first.duration) == 1
        assert (second.hour, second.started, second.cancelled) == (now + timedelta(hours=1), 0, 1)

    def test_counts_failures_and_not_what_rests_or_moves(self, make_task, log):
        task = make_task(state=State.DISCARDED, attempt=4, reason_code="error")
        log(task, "active", "retryable", code="error", attempt=1)
        log(task, "active", "retryable", code="waiting", attempt=2)
        log(task, "active", "retryable", code="released", attempt=3)
        log(task, "retryable", "retryable", code="operator", attempt=3)
        log(task, "active", "discarded", code="error", attempt=4)

        counted()

        figure = Figure.objects.get()
        assert (figure.failed, figure.discarded, figure.started) == (1, 1, 0)

    def test_sums_up_how_often_handlers_were_entered_again(self, make_task, log):
        """However the attempt ended; what has no such entry adds nothing."""
        for state, again in (("completed", {"reentered": 2}), ("discarded", {"reentered": 1}), ("completed", {})):
            log(make_task(state=State(state), attempt=1), "active", state, **again)
        log(make_task(state=State.RETRYABLE, attempt=1), "active", "retryable", code="error", reentered=1)

        counted()

        assert Total.objects.get().reentered == 4

    def test_counts_each_entry_once_in_batches_of_any_size(self, completed, make_task, log):
        counted(size=1)
        roll_up(using="default")
        log(make_task(state=State.DISCARDED, reason_code="error"), "active", "discarded", code="error")
        counted()

        figure = Figure.objects.get()
        assert (figure.started, figure.completed, figure.discarded) == (1, 1, 1)

    def test_passes_over_numbers_that_are_of_nothing(self, completed, make_task, now):
        """A log that was pruned whole begins anew far behind where it was counted to."""
        counted()
        LogEntry.objects.create(
            pk=10**9, task=make_task(), seq=1, at=now, from_state="active", to_state="discarded", attempt=1
        )
        counted(size=10)

        assert Figure.objects.filter(discarded=1).exists()
        assert RollUp.objects.get().counted == 10**9

    def test_takes_back_both_when_it_is_ended_in_the_middle(self, completed):
        roll_up(using="default")  # Marks.
        with transaction.atomic():
            rolled_up_once()
            assert Figure.objects.exists()
            transaction.set_rollback(True)
        assert not Figure.objects.exists()

        counted()

        assert Figure.objects.get().completed == 1

    def test_counts_in_an_hour_that_was_counted_already(self, completed, make_task, log):
        """As after a clock was set back: the numbers of entries decide, not their times."""
        counted()
        log(make_task(state=State.CANCELLED), "scheduled", "cancelled", after=1)

        counted()

        assert Figure.objects.get().cancelled == 1

    def test_costs_the_same_for_many(self, make_task, log):
        def asked():
            roll_up(using="default")  # Marks.
            place = RollUp.objects.get().counted
            while RollUp.objects.get().counted == place:
                with CaptureQueriesContext(connection) as queries:
                    roll_up(using="default")
            return len(queries)

        log(make_task(state=State.CANCELLED), "scheduled", "cancelled")
        counted()
        log(make_task(state=State.CANCELLED), "scheduled", "cancelled")
        few = asked()
        for _ in range(30):
            log(make_task(state=State.CANCELLED), "scheduled", "cancelled")

        assert asked() == few
        assert Figure.objects.get().cancelled == 32

    def test_says_whether_marked_entries_are_left(self, completed):
        last, place = LogEntry.objects.latest("pk").pk, None
        roll_up(using="default")  # Marks.
        told, deadline = [], monotonic() + PATIENCE
        while place != last:
            assert monotonic() < deadline, "Somebody has a transaction open."
            before, is_left = place, roll_up(size=1, using="default")
            place = RollUp.objects.get().counted
            if place != before:  # Else somebody has a transaction open.
                told.append(is_left)

        assert told[-1] is False
        assert set(told[:-1]) == {True}

    def test_begins_with_what_comes_after_the_first_call(self, completed):
        RollUp.objects.all().delete()

        counted()

        assert not Figure.objects.exists()

    def test_goes_on_in_another_cluster(self, completed):
        """A dump that was restored where transactions have smaller numbers."""
        roll_up(using="default")
        RollUp.objects.update(horizon=2**60)

        counted()

        assert Figure.objects.get().completed == 1


class TestTotals:
    def test_count_the_same_as_figures_over_all_hours_with_sums_of_seconds(self, completed, make_task, log):
        log(make_task(state=State.CANCELLED), "scheduled", "cancelled", after=7200)
        log(make_task(state=State.DISCARDED, task_key="trial.end"), "active", "discarded", code="error")

        counted(size=1)

        ended, reminded = Total.objects.order_by("task_key")
        assert (ended.discarded, ended.started) == (1, 0)
        assert (reminded.started, reminded.completed, reminded.cancelled) == (1, 1, 1)
        assert (reminded.late_seconds, reminded.taken_seconds) == (4, 40)
        assert sum(reminded.lateness) == sum(reminded.duration) == 1

    def test_are_taken_back_with_the_figures_when_it_is_ended_in_the_middle(self, completed):
        roll_up(using="default")  # Marks.
        with transaction.atomic():
            rolled_up_once()
            assert Total.objects.exists()
            transaction.set_rollback(True)
        assert not Total.objects.exists()

        counted()

        assert Total.objects.get().completed == 1

    def test_stay_when_figures_and_the_log_are_gone(self, completed, log, make_task, now, settings):
        settings.TIMELINE = {"FIGURES_RETENTION": timedelta(days=1)}
        counted()
        forget_figures(now=now + timedelta(days=9), using="default")
        log(make_task(state=State.CANCELLED), "scheduled", "cancelled")
        counted()

        total = Total.objects.get()
        assert (total.completed, total.cancelled) == (1, 1)
        assert not Figure.objects.filter(completed=1).exists()

    def test_only_grow_when_a_clock_is_set_back(self, make_task, log, now):
        """An attempt that ends before it began took no time."""
        task = make_task(state=State.COMPLETED, attempt=1, started_at=now + timedelta(hours=1))
        log(task, "active", "completed", code="done")

        counted()

        assert (Total.objects.get().taken_seconds, sum(Total.objects.get().duration)) == (0, 1)


class TestForgetFigures:
    def test_deletes_what_is_older_than_the_setting_says(self, now, settings):
        settings.TIMELINE = {"FIGURES_RETENTION": timedelta(days=2)}
        for days in (1, 3):
            Figure.objects.create(hour=now - timedelta(days=days), task_key="trial.remind")

        assert forget_figures(now=now, using="default") == 1
        assert Figure.objects.get().hour == now - timedelta(days=1)

    def test_deletes_nothing_without_one(self, now, settings):
        settings.TIMELINE = {"FIGURES_RETENTION": None}
        Figure.objects.create(hour=now - timedelta(days=9999), task_key="trial.remind")

        assert forget_figures(now=now, using="default") == 0


class TestEachMinute:
    def test_is_counted_at_the_second_though_somebody_always_writes(self, make_task, log, monkeypatch):
        """What is open when the log is marked has ended a minute later, and not sooner."""
        minute, counted_after = 0, []

        def open_transactions(using):
            last = LogEntry.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
            return minute * 10, minute * 10 + 5, last

        monkeypatch.setattr(figures, "_open_transactions", open_transactions)
        RollUp.objects.all().delete()
        count_log("default")
        task, since = make_task(state=State.CANCELLED), {}
        for minute in range(1, 9):
            since[log(task, "scheduled", "cancelled").pk] = minute
            count_log("default")
            place = RollUp.objects.get().counted
            counted_after += [minute - since.pop(pk) for pk in list(since) if pk <= place]

        assert counted_after == [1] * 7
