"""The demo's mail server: mail goes into files; while it is down, or where a mailbox is full, nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from smtplib import SMTPRecipientsRefused

from django.conf import settings
from django.core.mail import EmailMessage
from django.core.mail.backends.filebased import EmailBackend

from project.demo.people import FULL


def sign_of_outage() -> Path:
    """The file that says, while it is there, that the mail server is down."""
    return Path(settings.DATA_DIR) / "mail-is-down"


def let_be_down(down: bool) -> bool:
    """Let the mail server be down, or up again; whether that is new."""
    sign = sign_of_outage()
    if down == sign.exists():
        return False
    if down:
        sign.touch()
    else:
        sign.unlink()
    return True


class MailServer(EmailBackend):
    """Writes mails into files."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        """Take mails, or refuse the connection while it is down, or those for a mailbox that is full."""
        if sign_of_outage().exists():
            raise ConnectionRefusedError("The mail server does not answer.")
        for address in (address for message in email_messages for address in message.recipients()):
            if address.endswith(f"@{FULL}"):
                raise SMTPRecipientsRefused({address: (552, b"The mailbox is full.")})
        return super().send_messages(email_messages)
