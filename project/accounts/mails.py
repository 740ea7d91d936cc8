"""The mails of the trial, through Django's mail framework."""

from __future__ import annotations

import logging
from smtplib import SMTPRecipientsRefused
from typing import TYPE_CHECKING, TypedDict

from django.core.mail import send_mail
from django.utils import timezone
from django.utils.formats import date_format

if TYPE_CHECKING:
    from project.accounts.models import User

logger = logging.getLogger(__name__)


class Sent(TypedDict):
    """What was sent, as a task keeps it: *what was in the mail* has an answer on its page. The welcome has a key in it."""

    to: str
    subject: str
    text: str


class MailRefused(OSError):
    """A mail server takes nothing for somebody, and said why; as what smtplib raises, but for people to read."""


def send_welcome(user: User, link: str) -> bool:
    """The link to “my timeline”, the only way in. Whether the mail server took it: the page that asks for it stands without."""
    try:
        _send(user, "Welcome to Parley", f"Your trial has begun. Your timeline, and all you can do with it:\n{link}")
    except OSError:  # What smtplib raises is one, too.
        logger.warning("The link of account %s could not be mailed.", user.pk, exc_info=True)
        return False
    return True


def send_reminder(user: User) -> Sent:
    """The trial is about to end."""
    ends = date_format(timezone.localtime(user.trial_ends_at), "j F Y")
    return _send(
        user, "Your trial ends soon", f"The trial for {user.website} ends on {ends}. Configure payment to go on."
    )


def send_expired(user: User) -> Sent:
    """The trial has ended."""
    return _send(
        user, "Your trial has ended", f"The chat on {user.website} is switched off. Configure payment to switch it on."
    )


def send_still_in_use(user: User) -> Sent:
    """The script still calls."""
    text = f"The trial is over, but {user.website} still calls the chat. Configure payment, or take the script out."
    return _send(user, "Your website still calls the chat", text)


def _send(user: User, subject: str, text: str) -> Sent:
    try:
        send_mail(subject, text, None, [user.email])
    except SMTPRecipientsRefused as error:
        [(code, said)] = error.recipients.values()  # By the address as it was sent, which may be written otherwise.
        raise MailRefused(f"No mail is taken for {user.email}: {said.decode(errors='replace')} ({code})") from error
    return Sent(to=user.email, subject=subject, text=text)
