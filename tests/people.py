"""People who may do something, and are logged in, by few statements: nearly each test of a page makes some."""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import Permission
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone
from django.utils.crypto import get_random_string

from project.accounts.models import User


def permit(user: User, *names: str) -> None:
    """Give somebody, who has none, permissions of these names."""
    given = User.user_permissions.through
    keys = Permission.objects.filter(codename__in=names).order_by().values_list("pk", flat=True)
    given.objects.bulk_create(given(user_id=user.pk, permission_id=key) for key in keys)


def log_in(client: Client, user: User) -> None:
    """
    Give a client a session of a user's by one statement, where ``force_login`` goes the way of a form by a dozen; no signal is
    sent, and no time of the login is kept.
    """
    store = import_module(settings.SESSION_ENGINE).SessionStore
    known = {
        SESSION_KEY: str(user.pk),
        BACKEND_SESSION_KEY: settings.AUTHENTICATION_BACKENDS[0],
        HASH_SESSION_KEY: user.get_session_auth_hash(),
    }
    session = Session.objects.create(
        session_key=get_random_string(32, "abcdefghijklmnopqrstuvwxyz0123456789"),
        session_data=store().encode(known),
        expire_date=timezone.now() + timedelta(days=1),
    )
    client.cookies[settings.SESSION_COOKIE_NAME] = session.session_key
