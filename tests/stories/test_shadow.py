"""The trial in shadow beside the nightly batch it is to replace; then the switch, in the middle of people's trials."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.mail import send_mail

from project.accounts.models import User
from project.accounts.timelines import Trial
from timeline.models import Event, ScheduledTask, TimelineRun
from timeline.shortcuts import emit, redrive, start
from timeline.testing import expect, only_timelines

REMINDER = "Your trial ends soon"
EXPIRED = "Your trial has ended"
STILL_IN_USE = "Your website still calls the chat"
BY_NIGHT = "Your trial ends soon, says the batch"


class TrialInShadow(Trial):
    """The trial as it stands, not yet in charge."""

    name = "trial"
    shadow = True


def nightly(now):
    """The batch job: remind who came within five days of the end since last night, switch off whose end has come."""
    waiting = User.objects.filter(is_active=True, payment_configured_at=None)
    for user in waiting.filter(trial_ends_at__gt=now + timedelta(days=4), trial_ends_at__lte=now + timedelta(days=5)):
        send_mail(BY_NIGHT, "", None, [user.email])
        emit("batch.reminded", user)
    for user in waiting.filter(trial_ends_at__lte=now):
        user.is_active = False
        user.save(update_fields=["is_active"])
        emit("batch.expired", user)


@pytest.fixture(autouse=True)
def _in_shadow(db):
    with only_timelines(TrialInShadow):
        yield


@pytest.fixture
def nights(clock):
    """Let so many days pass; each night at two the batch job runs."""

    def pass_by(days):
        for _ in range(days):
            clock.run_until(clock.now.replace(hour=2) + timedelta(days=1))
            nightly(clock.now)

    return pass_by


class TestBesideTheBatchJob:
    def test_records_what_would_have_run(self, account, nights):
        """The mail that tells of the end would have come at once; by then the job, which comes by night, has not been."""
        nights(40)

        expect(account).rows(
            ("remind", "completed", "shadow"),
            ("expire", "completed", "shadow"),
            ("tell_expired", "cancelled", "unless is_active"),
            ("check_script_usage", "completed", "shadow"),
        ).open().foreseen()
        assert TimelineRun.objects.get().end_reason == "finished"

    def test_leaves_all_the_doing_to_the_job(self, account, nights, mails):
        nights(40)

        assert mails() == [BY_NIGHT]
        assert [event.name for event in Event.objects.order_by("pk")] == [
            "user.created",
            "batch.reminded",
            "batch.expired",
        ]

    def test_agrees_with_the_job(self, account, nights, clock):
        nights(40)

        for name, task_key in (("batch.reminded", "trial.remind"), ("batch.expired", "trial.expire")):
            did = Event.objects.get(name=name)
            would = ScheduledTask.objects.would_have_run().get(task_key=task_key)
            assert did.entity_ref == would.entity_ref
            assert timedelta(0) <= did.occurred_at - would.finished_at < timedelta(days=1)

    def test_ends_with_a_payment_as_ever(self, ada, account, nights, mails, clock):
        nights(3)
        ada.do("pay")
        nights(40)

        expect(account).rows(("remind", "cancelled", "paid"), ("expire", "cancelled", "paid"))
        assert mails() == []

    def test_switches_nobody_off_by_itself(self, account, clock, mails):
        """Without the job nothing happens to the account at all."""
        clock.advance(days=60)

        account.refresh_from_db()
        assert account.is_active is True
        assert mails() == []
        expect(account).completed("expire", reason="shadow").cancelled("check_script_usage", reason="guard")


class TestTheSwitch:
    def test_lets_run_what_falls_due_after_it(self, ada, account, nights, clock, mails):
        """On day 27: the reminder was the job's; the end and what follows it are the timeline's."""
        nights(27)

        with only_timelines(Trial):
            clock.advance(days=4)
            ada.do("call")
            clock.advance(days=20)

        expect(account).rows(
            ("remind", "completed", "shadow"),
            ("expire", "completed", "done"),
            ("tell_expired", "completed", "done"),
            ("check_script_usage", "completed", "done"),
        )
        assert mails() == [BY_NIGHT, EXPIRED, STILL_IN_USE]
        account.refresh_from_db()
        assert account.is_active is False

    def test_runs_nothing_twice(self, account, nights, clock, mails):
        nights(27)

        with only_timelines(Trial):
            clock.advance(days=40)

        rows = ScheduledTask.objects.order_by("task_key")
        assert list(rows.values_list("task_key", "revision", "attempt", "reason_code")) == [
            ("trial.check_script_usage", 1, 1, "done"),
            ("trial.expire", 1, 1, "done"),
            ("trial.remind", 1, 1, "shadow"),
            ("trial.tell_expired", 1, 1, "done"),
        ]
        assert mails() == [BY_NIGHT, EXPIRED]

    def test_moves_no_row(self, account, clock):
        before = list(ScheduledTask.objects.order_by("pk").values())

        with only_timelines(Trial):
            account.save()
            assert not start(Trial, account).created

        assert list(ScheduledTask.objects.order_by("pk").values()) == before

    def test_between_a_task_and_what_follows_it_lets_the_follower_run(self, ada, account, nights, clock, mails):
        nights(31)
        ada.do("call")

        with only_timelines(Trial):
            clock.advance(days=10)

        expect(account).completed("expire", reason="shadow").completed("check_script_usage", reason="done")
        assert mails() == [BY_NIGHT, STILL_IN_USE]

    def test_lets_run_what_was_due_and_had_no_worker(self, account, clock, mails):
        """Due while no worker ran: it is not done yet, so it is done after the switch, once."""
        clock.set(clock.now + timedelta(days=26))

        with only_timelines(Trial):
            clock.run_due()
            clock.run_due()

        expect(account).completed("remind", reason="done", times=1)
        assert mails() == [REMINDER]

    def test_leaves_a_gap_after_the_jobs_last_night_that_a_redrive_closes(self, account, clock, mails):
        """What fell due between the last run of the job and the switch was done by neither."""
        clock.advance(days=25)
        last_night = clock.now.replace(hour=2)
        nightly(last_night)
        assert mails() == []

        with only_timelines(Trial):
            clock.advance(hours=1)
            assert mails() == []
            [row] = ScheduledTask.objects.would_have_run().filter(finished_at__gt=last_night)
            redrive(row, reason="between the job's last run and the switch")
            clock.run_due()

            assert mails() == [REMINDER]
            expect(account).completed("remind", reason="shadow", times=1).completed("remind", reason="done", times=1)

    def test_can_be_taken_back(self, account, clock, mails):
        with only_timelines(Trial):
            clock.advance(days=26)
        clock.advance(days=20)

        assert mails() == [REMINDER]
        expect(account).completed("remind", reason="done").completed("expire", reason="shadow")
        account.refresh_from_db()
        assert account.is_active is True
