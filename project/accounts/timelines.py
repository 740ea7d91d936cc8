"""The future of an account: what its trial brings, declared once."""

from __future__ import annotations

from datetime import timedelta

from django.utils.translation import gettext_lazy as _

from project.accounts import mails
from project.accounts.models import User
from timeline import Timeline, after, at, before, task


def has_payment(user: User) -> bool:
    """Whether the account is paid for."""
    return user.payment_configured_at is not None


def is_active(user: User) -> bool:
    """Whether the account is in use."""
    return user.is_active


class Trial(Timeline):
    """Remind, expire, and look whether the chat is still in use; all of it unless the customer pays or closes."""

    entity = "accounts.User"
    starts_on = ("user.created", "trial.extended")
    exits = {"payment.configured": "paid", "trial.closed": "closed"}
    titles = {
        "user.created": _("An account was opened"),
        "trial.extended": _("The trial was extended"),
        "payment.configured": _("The customer pays"),
        "trial.closed": _("The customer has closed the account"),
        "has_payment": _("the account is paid for"),
        "is_active": _("the account is in use"),
    }

    @task(
        before("trial_ends_at", days=5),
        expires=timedelta(days=5),  # At the end, it is no reminder any more.
        unless=has_payment,
        atomic=False,
        title=_("Remind that the trial ends"),
        tags=("mail",),
    )
    def remind(self, user: User) -> mails.Sent:
        """Five days before the end: say that it is near."""
        return mails.send_reminder(user)

    @task(at("trial_ends_at"), unless=has_payment, title=_("End the trial"))
    def expire(self, user: User) -> None:
        """At the end: make the account inactive."""
        user.is_active = False
        user.save(update_fields=["is_active"])

    @task(after(expire), unless=is_active, atomic=False, title=_("Tell that the trial has ended"), tags=("mail",))
    def tell_expired(self, user: User) -> mails.Sent:
        """Once it is inactive: tell the customer."""
        return mails.send_expired(user)

    @task(
        after(expire, days=2),
        unless=is_active,
        atomic=False,
        title=_("Look whether the script is still in use"),
        tags=("mail",),
    )
    def check_script_usage(self, user: User) -> dict[str, object]:
        """Two days later: if the website still calls the chat, tell the customer again."""
        expired_at = user.trial_ends_at
        in_use = user.script_seen_at is not None and user.script_seen_at > expired_at
        return {"in_use": in_use, **(mails.send_still_in_use(user) if in_use else {})}
