"""The settlement, which moves money: one a day, each transaction once, whatever dies, fails, or is told twice."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta
from itertools import count

import pytest
from django.core import mail

from project.billing.models import Book, Report, Transaction
from project.billing.timelines import Reconciliation, Settlement, settlement
from project.demo.faults import Faults
from project.demo.outside import Outside
from tests.asking import WHOLE
from tests.billing import at_night, settle, transactions
from tests.faults.dying import Points
from tests.processes import let_be_dead
from timeline import daily
from timeline.dispatch.poll import stage
from timeline.dispatch.rescue import rescue
from timeline.features.recurring.verbs import NextBeginnings, recur
from timeline.models import ScheduledTask, StepRecord, TimelineRun
from timeline.shortcuts import redrive
from timeline.testing import StoryClock, only_timelines

pytestmark = pytest.mark.timeline(raises=False)  # Nights go wrong here.

HOUR = timedelta(hours=1)
NIGHTS = int(os.environ.get("NIGHTS", "60" if WHOLE else "30"))  # make settlement: a thousand.
KNOWN = [Settlement, Reconciliation]


def settled():
    """The settlements that there have been, first to last."""
    return list(ScheduledTask.objects.filter(task_key="settlement.settle", state="completed").order_by("scheduled_at"))


class TestANight:
    known = KNOWN

    def test_pays_out_what_came_before_the_day_batch_by_batch(self, billing, outside):
        transactions(250, billing.now)
        tomorrow = at_night(billing).replace(hour=0)  # One o'clock in Berlin: of the next day already.
        later = transactions(3, tomorrow)
        billing.run_until(at_night(billing) + HOUR)

        [task] = settled()
        assert task.result == {"settled": 250, "cents": sum(100 + n for n in range(250))}
        assert outside.books.done["settle"] == 3
        assert outside.books.told()["paid_twice"] == 0
        assert Transaction.objects.filter(status="settled").count() == 250
        assert Transaction.objects.filter(book=None).count() == len(later)
        loop = StepRecord.objects.get(name="settle_batch")
        assert (loop.done, loop.total) == (250, 250)

    def test_reports_and_closes_its_book(self, billing):
        transactions(3, billing.now)
        billing.run_until(at_night(billing) + HOUR)

        book = Book.objects.get()
        assert (book.day, book.settled, book.closed_at is not None) == (date(2026, 11, 24), 3, True)
        assert Report.objects.get(kind="settlement").figures == {"settled": 3, "cents": 303}
        assert [message.subject for message in mail.outbox] == ["Settlement of 2026-11-24"]

    def test_with_nothing_to_settle_is_closed_without_a_call_or_a_mail(self, billing, outside):
        billing.run_until(at_night(billing) + HOUR)

        assert (Book.objects.get().closed_at is not None, Book.objects.get().settled) == (True, 0)
        assert (outside.books.told()["done"], mail.outbox) == ({}, [])
        assert settled()[0].result == {"settled": 0, "cents": 0}

    def test_is_reconciled_as_soon_as_it_has_ended(self, billing):
        transactions(3, billing.now)
        billing.run_until(at_night(billing))

        compared = ScheduledTask.objects.get(task_key="reconciliation.compare")
        assert (compared.state, compared.result, compared.run.key) == ("completed", {"missing": 0}, "2026-11-24")

    def test_whose_processor_knows_less_is_told_to_finance(self, billing, outside):
        transactions(3, billing.now)
        outside.books.paid_for = lambda day: {"count": 2, "cents": 201}
        billing.run_until(at_night(billing))

        assert mail.outbox[-1].subject == "The books of 2026-11-24 differ"

    def test_that_has_ended_says_nothing_of_being_late(self, billing):
        transactions(3, billing.now)
        billing.run_until(at_night(billing) + 10 * HOUR)

        late = ScheduledTask.objects.filter(task_key="settlement.late").order_by("scheduled_at").first()
        assert (late.state, late.reason_code) == ("cancelled", "run_ended")

    def test_that_hangs_for_three_hours_is_told_to_people(self, billing, outside, settings):
        settings.TIMELINE = {**settings.TIMELINE, "ALERTS": ["ops@example.com"]}
        transactions(3, billing.now)
        outside.faults.failing = 1
        task = billing_row(billing)
        ScheduledTask.objects.filter(pk=task.pk).update(
            scheduled_at=task.scheduled_at + 5 * HOUR
        )  # Nothing has run it.

        billing.run_until(at_night(billing) + 4 * HOUR)

        assert "settlement.late" in mail.outbox[0].subject + mail.outbox[0].body
        assert mail.outbox[0].to == ["ops@example.com"]


def billing_row(clock):
    """The settlement that is ahead."""
    clock.run_due()
    return ScheduledTask.objects.open().get(task_key="settlement.settle")


class TestKilled:
    """
    Its worker dies before and after each statement and COMMIT, in each batch; another one goes on. At every third of these
    points, unless everything is asked.
    """

    known = [Settlement]

    def test_anywhere_it_pays_each_once_and_closes_the_book_once(self, billing, outside, monkeypatch):
        monkeypatch.setattr(settlement, "BATCH", 2)
        nights = 0
        for died in count(step=1 if WHOLE else 3):
            nights += 1
            transactions(5, billing.now)
            points = self.settle_and_die_at(died, billing)
            self.carry_on(billing)
            book = Book.objects.latest("day")
            assert (book.settled, book.closed_at is not None) == (5, True), points.passed[-1:]
            if not points.dead:
                break

        told = outside.books.told()
        assert died > 50
        assert "before COMMIT" in points.passed
        assert (told["paid"], told["paid_twice"]) == (5 * nights, 0)
        assert told["repeated"]["settle"] > 0  # Batches were called for again, and known by their keys.
        assert Transaction.objects.filter(status="settled").count() == 5 * nights
        assert Report.objects.count() == Book.objects.count() == len(settled()) == nights

    def settle_and_die_at(self, point, clock):
        task = billing_row(clock)
        clock.set(task.scheduled_at)
        stage(now=clock.now, using="default")
        points = Points(point)
        with points.passing():
            settle(lambda: clock.now)
        return points

    def carry_on(self, clock):
        let_be_dead()
        rescue(now=clock.now, using="default")
        clock.advance(HOUR)

    def test_where_keys_are_not_heeded_it_pays_twice_and_the_books_say_so(self, billing, settings):
        """What an outside without idempotency keys costs: the counter-story."""
        with Outside(with_keys=False, faults=Faults(losing=0.5, seed=2)).answering() as careless:
            settings.BILLING_OUTSIDE = careless.url
            transactions(500, billing.now)
            billing.run_until(at_night(billing) + HOUR)

        assert careless.books.told()["paid_twice"] >= 100


class TestOneADay:
    known = [Settlement]

    def test_whoever_polls(self, billing):
        transactions(3, billing.now)
        billing.run_due()
        for _ in range(5):
            recur(NextBeginnings(), now=at_night(billing), using="default")
        billing.run_until(at_night(billing) + HOUR)

        assert TimelineRun.objects.filter(key="2026-11-24").count() == 1
        assert len(settled()) == 1

    def test_though_the_clock_is_set_back_an_hour(self, billing, outside):
        transactions(3, billing.now)
        night = at_night(billing)
        billing.run_until(night + timedelta(minutes=30))
        billing.set(night - timedelta(minutes=30))
        transactions(3, night - 20 * HOUR)
        billing.run_until(night + timedelta(minutes=30))

        assert (len(settled()), Book.objects.count(), outside.books.done["settle"]) == (1, 1, 1)
        billing.run_until(night + 25 * HOUR)
        assert [book.settled for book in Book.objects.order_by("day")] == [3, 3]

    @pytest.mark.parametrize(
        ("noon", "night"),
        [
            pytest.param(datetime(2026, 10, 24, 12, tzinfo=UTC), "2026-10-25", id="has-two-o-clock-twice"),
            pytest.param(datetime(2027, 3, 27, 12, tzinfo=UTC), "2027-03-28", id="has-no-two-o-clock"),
        ],
    )
    def test_on_the_night_that(self, billing, outside, noon, night):
        transactions(3, noon - timedelta(hours=1))
        with StoryClock(noon) as clock:
            clock.run_until(noon + timedelta(hours=20))

        assert [(task.run.key, task.result["settled"]) for task in settled()] == [(night, 3)]

    def test_redriven_by_mistake_it_does_not_settle_again(self, billing, outside):
        transactions(3, billing.now)
        billing.run_until(at_night(billing) + HOUR)

        redrive(settled()[0], reason="a mistake")
        billing.advance(days=0, hours=2)

        assert ScheduledTask.objects.filter(task_key="settlement.settle").order_by("-revision")[0].state != "completed"
        assert (outside.books.done["settle"], Book.objects.count()) == (1, 1)

    def test_begun_at_23_59_it_settles_the_day_it_began_with_after_midnight_too(self, billing, outside):
        class Evening(Settlement):
            """As it was declared once."""

            name = "settlement"
            starts_on = daily("23:59", zone="Europe/Berlin", once_per="day", overlap="allow")

        with only_timelines(Evening):
            transactions(300, billing.now - timedelta(days=1))
            outside.faults = Faults(failing=0.5, seed=43)
            billing.run_until(datetime(2026, 11, 24, 6, tzinfo=UTC))

        [task] = settled()
        assert task.finished_at > datetime(2026, 11, 23, 23, 0, tzinfo=UTC)  # Midnight in Berlin.
        assert task.attempt > 1
        assert [str(day) for day in Book.objects.values_list("day", flat=True)] == ["2026-11-23"]
        assert Report.objects.get().period == "2026-11-23"


class TestManyNights:
    known = [Settlement]

    def test_with_faults_heal_by_themselves_and_pay_nobody_twice(self, billing, outside, monkeypatch, capsys):
        """At the rates of the demo, 5 % refused and 2 % of the answers lost, and a worker killed on each fifth night."""
        monkeypatch.setattr(settlement, "BATCH", 5)
        outside.faults = Faults(failing=0.05, losing=0.02, seed=7)
        for night in range(NIGHTS):
            transactions(20, billing.now)
            if night % 5 == 0:
                killed = TestKilled()
                killed.settle_and_die_at(night % 97, billing)
                killed.carry_on(billing)
            else:
                billing.run_until(at_night(billing) + HOUR)

        told = outside.books.told()
        failures = outside.books.faults.total()
        discarded = ScheduledTask.objects.filter(state="discarded").count()
        healed = 1 - discarded / failures
        with capsys.disabled():
            print(f"\n{NIGHTS} nights: {failures} failures, {healed:.1%} healed; {told['paid_twice']} paid twice.")
        assert failures >= NIGHTS / 10
        assert healed >= 0.94
        assert (told["paid"], told["paid_twice"]) == (20 * NIGHTS, 0)
        assert len(settled()) == Book.objects.filter(closed_at__isnull=False).count() == NIGHTS
        assert not Transaction.objects.filter(status="pending").exists()
