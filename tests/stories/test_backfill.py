"""A timeline is started for people who were there before it: what is long past must not reach them all at once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from project.accounts.models import User
from project.accounts.timelines import Trial, has_payment
from timeline import Timeline, after, at, task
from timeline.models import ScheduledTask, TimelineRun
from timeline.shortcuts import start
from timeline.testing import expect, only_timelines

REMINDER = "Your trial ends soon"
EXPIRED = "Your trial has ended"
STILL_IN_USE = "Your website still calls the chat"


class TrialInShadow(Trial):
    """The trial, before the switch."""

    name = "trial"
    shadow = True


class TrialWithALimit(Timeline):
    """Nothing of it is done later than a week."""

    name = "trial"
    entity = "accounts.User"

    @task(at("trial_ends_at"), unless=has_payment, expires=timedelta(days=7))
    def expire(self, user): ...

    @task(after(expire, days=2))
    def check_script_usage(self, user): ...


@pytest.fixture(autouse=True)
def _in_shadow(db):
    with only_timelines(TrialInShadow):
        yield


@pytest.fixture
def grace(clock):
    """Someone whose trial ended half a year ago, and who was switched off then."""
    ended = clock.now - timedelta(days=180)
    return User.objects.create(
        email="grace@example.com",
        is_active=False,
        signed_up_at=ended - timedelta(days=30),
        trial_ends_at=ended,
        script_seen_at=clock.now,
    )


class TestPeopleWhoWereThereBefore:
    def test_are_not_mailed_all_at_once_in_shadow(self, grace, clock, mails):
        start(TrialInShadow, grace, started_at=grace.signed_up_at)

        assert {row.reason_code for row in clock.run_due()} == {
            "shadow",
            "expired",
        }  # A reminder says how late is too late.
        clock.advance(days=3)
        with only_timelines(Trial):
            clock.advance(days=60)

        assert mails() == []
        assert {row.reason_code for row in ScheduledTask.objects.all()} == {"shadow", "expired"}
        assert TimelineRun.objects.get().end_reason == "finished"

    def test_are_mailed_all_at_once_out_of_it(self, grace, clock, mails):
        """That is what the shadow is for: what is long past is due at once, but for what says how late is too late."""
        with only_timelines(Trial):
            start(Trial, grace, started_at=grace.signed_up_at)
            clock.run_due()

        assert mails() == [EXPIRED]

    def test_get_a_late_follow_up_if_the_switch_comes_before_it(self, grace, clock, mails):
        """A follow-up counts from the end of its predecessor, which was today: let the shadow outlive the longest chain."""
        start(TrialInShadow, grace, started_at=grace.signed_up_at)
        clock.advance(days=1)

        with only_timelines(Trial):
            clock.advance(days=5)

        expect(grace).completed("check_script_usage", reason="done")
        assert mails() == [STILL_IN_USE]

    def test_are_begun_anew_if_they_are_started_once_more(self, grace, clock, mails):
        """A finished run is no obstacle to the next: a loop must leave out who has had one."""
        start(TrialInShadow, grace, started_at=grace.signed_up_at)
        clock.advance(days=3)

        with only_timelines(Trial):
            assert start(Trial, grace, started_at=grace.signed_up_at).created
            clock.run_due()

        assert mails() == [EXPIRED]

    def test_are_left_alone_where_a_task_says_how_late_is_too_late(self, grace, clock):
        with only_timelines(TrialWithALimit):
            start(TrialWithALimit, grace, started_at=grace.signed_up_at)
            clock.advance(days=10)

        expect(grace).rows(("expire", "cancelled", "expired")).never("check_script_usage")

    def test_are_left_alone_if_they_paid_before_there_were_events(self, grace, clock, mails):
        """No event tells of it, so no exit ends the run; the guards see it."""
        User.objects.update(payment_configured_at=grace.trial_ends_at, is_active=True)

        start(TrialInShadow, grace, started_at=grace.signed_up_at)
        with only_timelines(Trial):
            clock.run_due()

        expect(grace).rows(("remind", "cancelled", "expired"), ("expire", "cancelled", "guard"))
        assert mails() == []
