"""The setting ``TIMELINE_WEBHOOKS``: a dict whose names, types and defaults are the fields of ``Settings``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from timeline.conf import check_kind, check_positive


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """
    What a host may set in ``TIMELINE_WEBHOOKS``.

    Args:
        ALLOW_LOOPBACK: Whether receivers may be called over http and on this machine: in a demo and in tests, nowhere else.
        CA_FILE: Path of certificates (PEM) that are trusted beside the usual ones. None: none.
        CONCURRENCY: How many deliveries a sender has under way at most; a quarter of these may be to receivers that fail.
        KEYS: Fernet keys that secrets are stored under: the first one encrypts, all of them decrypt. Needed.
        LOOK_AGAIN: How long a process may not know of an endpoint that another one has made.
        PER_ENDPOINT: How many of them may be to one endpoint.
        PORTS: Of receivers; with ``ALLOW_LOOPBACK``, any on this machine.
        TIMEOUT: How long a delivery may take, from the look-up of the name to the end of the answer.
    """

    ALLOW_LOOPBACK: bool = False
    CA_FILE: str | None = None
    CONCURRENCY: int = 64
    KEYS: Sequence[str] = ()
    LOOK_AGAIN: timedelta = timedelta(seconds=5)
    PER_ENDPOINT: int = 16
    PORTS: Sequence[int] = (443, 8443)
    TIMEOUT: timedelta = timedelta(seconds=10)


def get_settings() -> Settings:
    """Read ``TIMELINE_WEBHOOKS`` as it is now; ``ImproperlyConfigured`` for an unknown name or a wrong kind."""
    given: dict[str, Any] = getattr(settings, "TIMELINE_WEBHOOKS", {})
    if not isinstance(given, dict):
        raise ImproperlyConfigured(f"TIMELINE_WEBHOOKS is {given!r:.60}. Make it a dict.")
    for name, value in given.items():
        said = f"of type {type(value).__name__}"  # Not which: among them are keys.
        check_kind("TIMELINE_WEBHOOKS", Settings, name, value, instead=said)
        check_positive("TIMELINE_WEBHOOKS", name, value)
    return Settings(**given)
