"""A host's mails go by tasks: a backend of mails that enqueues them."""

from __future__ import annotations

from pathlib import Path

import django
import pytest
from django.conf import settings as of_django
from django.core import mail
from django.core.mail import EmailMessage, send_mail
from django.db import transaction

from tests.django_tasks.shop import mails
from timeline.models import ScheduledTask

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = Path(of_django.BASE_DIR) / "docs" / "how-to" / "django-tasks.md"


@pytest.fixture(autouse=True)
def _queued(settings, monkeypatch, clock):
    """Mails of the host go by the backend, and are in the outbox once they are sent."""
    backend = f"{mails.__name__}.QueuedEmail"
    if django.VERSION >= (6, 1):
        settings.MAILERS = {"default": {"BACKEND": backend}}
    else:
        settings.EMAIL_BACKEND = backend
    monkeypatch.setattr(mails, "SENDS", "django.core.mail.backends.locmem.EmailBackend")


def test_a_mail_is_sent_by_a_worker_after_the_commit(clock):
    with transaction.atomic():
        send_mail("Welcome", "Hello.", "shop@example.com", ["ada@example.com"], html_message="<b>Hello.</b>")
    row = ScheduledTask.objects.get()
    assert (row.state, mail.outbox) == ("available", [])

    clock.advance(seconds=1)

    row.refresh_from_db()
    assert (row.state, row.result) == ("completed", 1)
    [sent] = mail.outbox
    assert (sent.subject, sent.to, sent.body) == ("Welcome", ["ada@example.com"], "Hello.")
    assert [tuple(each) for each in sent.alternatives] == [("<b>Hello.</b>", "text/html")]


def test_none_is_sent_of_what_is_rolled_back(clock):
    with transaction.atomic():
        send_mail("Welcome", "Hello.", None, ["ada@example.com"])
        transaction.set_rollback(True)
    clock.advance(seconds=1)

    assert mail.outbox == []


def test_headers_and_copies_are_kept(clock):
    given = {"cc": ["bob@example.com"], "bcc": ["eve@example.com"], "reply_to": ["shop@example.com"]}
    EmailMessage("Hi", "Hello.", "x@example.com", ["ada@example.com"], headers={"X-Kind": "news"}, **given).send()

    clock.advance(seconds=1)

    [sent] = mail.outbox
    assert sent.recipients() == ["ada@example.com", "bob@example.com", "eve@example.com"]
    assert (sent.reply_to, sent.extra_headers) == (["shop@example.com"], {"X-Kind": "news"})


def test_one_with_a_file_is_sent_at_once():
    message = EmailMessage("Your invoice", "See there.", None, ["ada@example.com"])
    message.attach("invoice.txt", "19 €", "text/plain")
    message.send()

    assert len(mail.outbox) == 1
    assert not ScheduledTask.objects.exists()


def test_the_page_shows_this_backend():
    """But for the docstring, and how the framework is imported."""
    shown = Path(mails.__file__).read_text().partition('"""\n\n')[2]
    shown = shown.replace("from tests.django_tasks.framework import task", "from django.tasks import task")

    assert f"```py\n{shown}```" in PAGE.read_text()
