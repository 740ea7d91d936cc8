"""
Secrets of endpoints: random, shown once, and stored encrypted.

They are not made from ``SECRET_KEY``: whoever drops an old one would break all receivers.
"""

from __future__ import annotations

import base64
import os
from typing import Final

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.core.exceptions import ImproperlyConfigured

from timeline.webhooks.conf import get_settings

PREFIX: Final = "whsec_"
_BYTES: Final = 32
REMEDY: Final = (
    'Set TIMELINE_WEBHOOKS = {"KEYS": [...]} to keys that Fernet.generate_key() of the package cryptography made.'
    " Keep them out of the repository, and keep old ones behind the first."
)


def new_secret() -> str:
    """Make a secret as receivers are given it: ``whsec_`` and base64 of 32 random bytes."""
    return PREFIX + base64.b64encode(os.urandom(_BYTES)).decode()


def encrypted(secret: str) -> str:
    """
    Encrypt a secret with the first key.

    Raises:
        ImproperlyConfigured: if there is no key, or one is none.
    """
    return _box().encrypt(secret.encode()).decode()


def decrypted(stored: str) -> str:
    """
    Decrypt what was stored, whichever key it was stored under.

    Raises:
        ImproperlyConfigured: if no key fits, there is none, or one is none.
    """
    try:
        return _box().decrypt(stored.encode()).decode()
    except InvalidToken:
        raise ImproperlyConfigured("No key in TIMELINE_WEBHOOKS['KEYS'] opens the secret. Add the old one.") from None


def check_keys() -> None:
    """
    See that there are keys.

    Raises:
        ImproperlyConfigured: if there is none, or one is none. It does not say which text it was.
    """
    _box()


def _box() -> MultiFernet:
    keys = get_settings().KEYS
    if not keys:
        raise ImproperlyConfigured(f"TIMELINE_WEBHOOKS has no KEYS. {REMEDY}")
    try:
        return MultiFernet([Fernet(key) for key in keys])
    except (ValueError, TypeError):
        raise ImproperlyConfigured(f"TIMELINE_WEBHOOKS['KEYS'] has one that is no key. {REMEDY}") from None
