"""A person goes through the trial in five ways; each has the exact rows, reasons and mails, and what must not happen."""

from __future__ import annotations

from datetime import timedelta

from project.accounts.services import sign_up
from tests.databases import VENDOR
from timeline.models import Event, LogEntry, ScheduledTask, TimelineRun
from timeline.shortcuts import explain
from timeline.testing import expect

REMINDER = "Your trial ends soon"
EXPIRED = "Your trial has ended"
STILL_IN_USE = "Your website still calls the chat"


class TestSignUp:
    def test_writes_the_future_at_once(self, account, clock):
        """Reminder and expiry are rows, what follows the expiry is foreseen."""
        expect(account).scheduled("trial.remind", at=clock.now + timedelta(days=25))
        expect(account).scheduled("trial.expire", at=clock.now + timedelta(days=30))
        expect(account).open("remind", "expire").foreseen("tell_expired", "check_script_usage")

    def test_does_nothing_yet(self, account, mails, clock):
        clock.advance(days=24, hours=23, minutes=59)

        expect(account).rows(("remind", "scheduled"), ("expire", "scheduled"))
        assert mails() == []


class TestNeverPays:
    def test_is_reminded_expires_and_is_told_again_while_the_script_calls(self, ada, account, clock, mails):
        clock.advance(days=31)
        ada.do("call")
        clock.advance(days=9)

        expect(account).rows(
            ("remind", "completed", "done"),
            ("expire", "completed", "done"),
            ("tell_expired", "completed", "done"),
            ("check_script_usage", "completed", "done"),
        ).open().foreseen()
        assert mails() == [REMINDER, EXPIRED, STILL_IN_USE]
        told = ScheduledTask.objects.get(task_key="trial.check_script_usage").result
        assert told["in_use"] is True
        assert told["subject"] == "Your website still calls the chat"
        account.refresh_from_db()
        assert account.is_active is False
        assert TimelineRun.objects.get().end_reason == "finished"

    def test_is_not_told_again_once_the_script_is_out(self, ada, account, clock, mails):
        clock.advance(days=20)
        ada.do("call")
        clock.advance(days=20)

        expect(account).completed("check_script_usage", times=1)
        assert mails() == [REMINDER, EXPIRED]
        assert ScheduledTask.objects.get(task_key="trial.check_script_usage").result == {"in_use": False}

    def test_happens_each_at_its_own_moment(self, account, clock):
        begin = clock.now

        ran = clock.advance(days=40)

        moments = [(task.task_name, task.finished_at - begin) for task in ran]
        assert moments == [
            ("remind", timedelta(days=25)),
            ("expire", timedelta(days=30)),
            ("tell_expired", timedelta(days=30)),
            ("check_script_usage", timedelta(days=32)),
        ]

    def test_leaves_a_log_without_gaps(self, account, clock):
        clock.advance(days=40)

        for task in ScheduledTask.objects.all():
            assert [entry.seq for entry in task.log.order_by("seq")] == list(range(1, task.seq + 1))


class TestPaysOnDayThree:
    def test_ends_all_that_was_planned(self, ada, account, clock, mails):
        clock.advance(days=3)
        ada.do("pay")

        expect(account).rows(("remind", "cancelled", "paid"), ("expire", "cancelled", "paid")).foreseen()
        assert TimelineRun.objects.get().end_reason == "paid"
        assert {entry.actor for entry in LogEntry.objects.all()} == {"ada@example.com"}

    def test_is_never_reminded_nor_switched_off(self, ada, account, clock, mails):
        clock.advance(days=3)
        ada.do("pay")

        assert clock.advance(days=60) == []
        assert mails() == []
        expect(account).never("tell_expired").never("check_script_usage")
        account.refresh_from_db()
        assert account.is_active is True


class TestPaysOnDayTwentySeven:
    def test_was_reminded_and_is_not_switched_off(self, ada, account, clock, mails):
        clock.advance(days=27)
        ada.do("pay")
        clock.advance(days=60)

        expect(account).rows(("remind", "completed", "done"), ("expire", "cancelled", "paid"))
        assert mails() == [REMINDER]
        account.refresh_from_db()
        assert account.is_active is True

    def test_is_explained_in_words(self, ada, account, clock):
        clock.advance(days=27)
        ada.do("pay")

        story = explain(ScheduledTask.objects.get(task_key="trial.expire"))

        assert "the run ended by the exit “paid”, by ada@example.com" in story
        assert "(trial.tell_expired), which follows when it completes, has no row" in story


class TestPaysAfterTheEnd:
    def test_is_active_again_and_not_looked_at(self, ada, account, clock, mails):
        clock.advance(days=31)
        ada.do("pay")
        clock.advance(days=60)

        expect(account).cancelled("check_script_usage", reason="paid")
        assert mails() == [REMINDER, EXPIRED]
        account.refresh_from_db()
        assert account.is_active is True


class TestCloses:
    def test_ends_all_that_was_planned(self, ada, account, clock, mails):
        clock.advance(days=10)
        ada.do("close")

        expect(account).rows(("remind", "cancelled", "closed"), ("expire", "cancelled", "closed")).foreseen()
        assert TimelineRun.objects.get().end_reason == "closed"

    def test_gets_no_mail_and_no_second_event(self, ada, account, clock, mails):
        clock.advance(days=10)
        ada.do("close")
        ada.do("close")
        ada.do("pay")

        assert clock.advance(days=60) == []
        assert mails() == []
        assert [event.name for event in Event.objects.order_by("recorded_at", "pk")] == ["user.created", "trial.closed"]


class TestExtendsOnDayTwenty:
    def test_moves_the_rows_with_the_date(self, ada, account, clock):
        begin = clock.now
        clock.advance(days=20)
        before = set(ScheduledTask.objects.values_list("pk", flat=True))

        ada.do("extend")

        expect(account).scheduled("remind", at=begin + timedelta(days=39))
        expect(account).scheduled("expire", at=begin + timedelta(days=44))
        assert set(ScheduledTask.objects.values_list("pk", flat=True)) == before
        assert set(LogEntry.objects.values_list("reason_code", flat=True)) == {"moved"}

    def test_does_nothing_at_the_old_dates(self, ada, account, clock, mails):
        clock.advance(days=20)
        ada.do("extend")

        assert clock.advance(days=18) == []
        assert mails() == []

    def test_lives_the_whole_trial_later(self, ada, account, clock, mails):
        clock.advance(days=20)
        ada.do("extend")
        clock.advance(days=30)

        expect(account).rows(
            ("remind", "completed"),
            ("expire", "completed"),
            ("tell_expired", "completed"),
            ("check_script_usage", "completed"),
        )
        assert mails() == [REMINDER, EXPIRED]

    def test_is_reminded_once_more_when_extended_after_the_reminder(self, ada, account, clock, mails):
        clock.advance(days=27)
        ada.do("extend")
        clock.advance(days=13)

        expect(account).completed("remind", times=2)
        assert mails() == [REMINDER, REMINDER]

    def test_begins_anew_when_extended_after_the_end(self, ada, account, clock, mails):
        clock.advance(days=33)
        ada.do("extend")

        account.refresh_from_db()
        assert account.is_active is True
        expect(account).open("remind", "expire").foreseen("tell_expired", "check_script_usage")
        assert TimelineRun.objects.filter(ended_at=None).count() == 1


class TestTheCostOfASignUp:
    def test_is_two_statements_on_top_of_the_bare_one(self, django_assert_num_queries, clock):
        """Lock the account; write event, run and tasks: in the caller's transaction as it is, with no savepoint."""
        ours = 2 if VENDOR == "postgresql" else 4  # Event, run and tasks apart.
        # The account's own INSERT, ours, and the savepoint marks that the sign-up's transaction is within the test's.
        with django_assert_num_queries(1 + ours + 2):
            sign_up("ada@example.com", "ada.example.com", now=clock.now)
