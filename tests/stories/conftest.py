"""What the stories share: a person who signs up through the site's own form."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.core import mail

from project.accounts.models import User
from project.demo.browsers import InProcessBrowser, Visit
from project.demo.people import Person

SIGN_UP = datetime(2026, 1, 1, 9, 0, tzinfo=UTC)


@pytest.fixture
def ada(clock):
    """Ada signs up on 1 January at 9:00; her trial ends on 31 January."""
    clock.set(SIGN_UP)
    visit = Visit(Person("ada@example.com", "ada.example.com", "", ()), InProcessBrowser())
    visit.sign_up()
    mail.outbox.clear()  # The welcome is not the trial's.
    return visit


@pytest.fixture
def account(ada):
    """Her account, as it is in the database."""
    return User.objects.get(email="ada@example.com")


@pytest.fixture
def mails():
    """Subjects of the mails of the trial so far."""
    return lambda: [message.subject for message in mail.outbox]
