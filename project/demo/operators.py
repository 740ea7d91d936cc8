"""Who looks after the demo's site: an account for the admin, with a password that is told once and kept nowhere."""

from __future__ import annotations

import secrets
from datetime import datetime
from typing import NamedTuple

from project.accounts.models import User

EMAIL = "operator@parley.example"


class Login(NamedTuple):
    """What the admin asks for."""

    email: str
    password: str


def make_operator(*, now: datetime) -> Login:
    """Make the account."""
    password = secrets.token_urlsafe(12)
    user = User(
        email=EMAIL, website="parley.example", is_staff=True, is_superuser=True, signed_up_at=now, trial_ends_at=now
    )
    user.set_password(password)
    user.save(force_insert=True)
    return Login(EMAIL, password)
