"""Secrets of endpoints: random, shown once, stored encrypted; not by ``SECRET_KEY``, which people drop."""

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
    """Encrypt a secret with the first key; ``ImproperlyConfigured`` if there is none."""
    return _box().encrypt(secret.encode()).decode()


def decrypted(stored: str) -> str:
    """Decrypt what any of the keys has stored; ``ImproperlyConfigured`` if no key fits."""
    try:
        return _box().decrypt(stored.encode()).decode()
    except InvalidToken:
        raise ImproperlyConfigured("No key in TIMELINE_WEBHOOKS['KEYS'] opens the secret. Add the old one.") from None


def check_keys() -> None:
    """``ImproperlyConfigured`` unless there are valid keys. It does not say which text is none."""
    _box()


def _box() -> MultiFernet:
    keys = get_settings().KEYS
    if not keys:
        raise ImproperlyConfigured(f"TIMELINE_WEBHOOKS has no KEYS. {REMEDY}")
    try:
        return MultiFernet([Fernet(key) for key in keys])
    except (ValueError, TypeError):
        raise ImproperlyConfigured(f"TIMELINE_WEBHOOKS['KEYS'] has one that is no key. {REMEDY}") from None
