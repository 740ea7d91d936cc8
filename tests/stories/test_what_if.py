"""Support asks what would come of ten more days, before it gives them; and what would come of a payment."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from timeline.models import Event, LogEntry, ScheduledTask, TimelineRun
from timeline.shortcuts import emit, what_if

TEN_DAYS = timedelta(days=10)


def stored() -> list[list[dict[str, Any]]]:
    """All that the database knows of her future and past."""
    return [list(model.objects.order_by("pk").values()) for model in (Event, TimelineRun, ScheduledTask, LogEntry)]


def due() -> dict[str, Any]:
    """What is ahead of her: task → when."""
    return dict(ScheduledTask.objects.filter(state="scheduled").values_list("task_key", "scheduled_at"))


@pytest.fixture
def told(account):
    """What she was told would come of ten more days: task → when. Rows only: what follows from them has none yet."""
    effects = what_if(account, fields={"trial_ends_at": account.trial_ends_at + TEN_DAYS})
    return {effect.task_key: effect.then_at for effect in effects if not effect.is_foreseen}


class TestTenMoreDays:
    def test_come_as_support_was_told(self, account, told, clock, mails):
        account.trial_ends_at += TEN_DAYS
        account.save()

        assert due() == told
        clock.set(told["trial.remind"] - timedelta(minutes=1))
        clock.run_due()
        assert mails() == []
        clock.set(told["trial.remind"])
        clock.run_due()
        assert len(mails()) == 1

    def test_were_only_asked_about(self, account, clock, mails):
        before, ahead = stored(), due()

        for question in (
            {"fields": {"trial_ends_at": account.trial_ends_at + TEN_DAYS}},
            {"event": "payment.configured"},
        ):
            assert what_if(account, **question)

        assert (stored(), mails()) == (before, [])
        clock.set(ahead["trial.remind"])  # Nobody gave her ten days: she is reminded as before.
        clock.run_due()
        assert len(mails()) == 1

    def test_are_no_promise_where_she_pays_meanwhile(self, account, told, clock, mails):
        """What was told was true then; the rows follow what is true now."""
        assert told
        emit("payment.configured", account)
        account.trial_ends_at += TEN_DAYS
        account.save()

        assert due() == {}
        clock.set(told["trial.expire"] + TEN_DAYS)
        clock.run_due()
        assert mails() == []
        account.refresh_from_db()
        assert account.is_active

    def test_are_told_anew_once_she_has_paid(self, account):
        emit("payment.configured", account)

        effects = what_if(account, fields={"trial_ends_at": account.trial_ends_at + TEN_DAYS})

        assert [effect.change for effect in effects] == []


class TestAPayment:
    def test_ends_what_support_was_told_it_would_end(self, account):
        gone = {
            effect.task_key: effect.why
            for effect in what_if(account, event="payment.configured")
            if effect.change == "gone" and not effect.is_foreseen
        }

        emit("payment.configured", account)

        rows = ScheduledTask.objects.filter(state="cancelled")
        assert {row.task_key for row in rows} == set(gone) == {"trial.remind", "trial.expire"}
        assert all("paid" in why for why in gone.values())
