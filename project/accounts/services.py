"""What a customer can do. Each changes the account and says so with an event, in one transaction."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from project.accounts.models import User
from timeline.shortcuts import emit


def sign_up(email: str, website: str, *, now: datetime) -> User:
    """Open an account; its trial begins."""
    with transaction.atomic():
        user = User(
            email=email,
            website=website,
            signed_up_at=now,
            trial_ends_at=now + timedelta(days=settings.TRIAL_DAYS),
        )
        user.set_unusable_password()
        user.save(force_insert=True)
        emit("user.created", user, key="sign-up")
    return user


def configure_payment(user: User, *, now: datetime) -> None:
    """Begin to pay: the account is active, whatever its trial was about to do."""
    with transaction.atomic():
        user.payment_configured_at = now
        user.is_active = True
        user.save(update_fields=["payment_configured_at", "is_active"])
        emit("payment.configured", user, actor=user.email)


def close_trial(user: User, *, now: datetime) -> None:
    """Give up the trial before its end."""
    with transaction.atomic():
        user.trial_closed_at = now
        user.is_active = False
        user.save(update_fields=["trial_closed_at", "is_active"])
        emit("trial.closed", user, actor=user.email)


def extend_trial(user: User, days: int, *, now: datetime) -> None:
    """Move the end of the trial; what was planned moves with it. One that had ended begins anew."""
    with transaction.atomic():
        user.trial_ends_at = max(user.trial_ends_at, now) + timedelta(days=days)
        user.is_active = True
        user.save(update_fields=["trial_ends_at", "is_active"])
        emit("trial.extended", user, actor=user.email)


def note_script_call(user: User, *, now: datetime) -> None:
    """The chat script called from the customer's website."""
    User.objects.filter(pk=user.pk).update(script_seen_at=now)
